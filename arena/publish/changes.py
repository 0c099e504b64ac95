"""What changed: between versions of a framework, and between runs of one version. Pure.

A cell is followed through versions by its mode, scenario, point and use of the key. What is compared is the
verdict with its anomalies, never a number of trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from arena.publish.collection import Collection, Published, use
from arena.publish.outcomes import SIGNS, first_anomaly, square
from arena.results import Result
from arena.statistics import disjoint

#: Said of a difference whose intervals overlap.
CHANCE = " (intervals overlap: may be chance)"


class Coordinates(NamedTuple):
    """A cell without its framework and version."""

    mode: str
    scenario: str
    point: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """Versions in a row with one outcome."""

    since: str
    until: str
    result: Result


@dataclass(frozen=True, slots=True)
class Course:
    """A cell's outcomes over the tested versions, oldest first: transitions only."""

    at: Coordinates
    spans: tuple[Span, ...]

    @property
    def sentence(self) -> str:
        """The course in words, e.g. `once until 1.0.10, twice since 1.2.11`."""
        parts = []
        for number, span in enumerate(self.spans):
            word = outcome_words(span.result)
            last = number == len(self.spans) - 1
            if last:
                parts.append(f"{word} since {span.since}")
            elif number == 0:
                parts.append(f"{word} until {span.until}")
            else:
                one = span.since == span.until
                parts.append(
                    f"{word} in {span.since}" if one else f"{word} from {span.since} to {span.until}"
                )
        apart = all(certain(a.result, b.result) for a, b in pairwise(self.spans))
        return ", ".join(parts) + ("" if apart else CHANCE)


@dataclass(frozen=True, slots=True)
class Change:
    """A cell whose outcome is another one than before; None where it was not there."""

    at: Coordinates
    before: Result | None
    after: Result | None

    @property
    def caution(self) -> str:
        """What must be said where the trials could differ by chance; empty where they could not."""
        both = self.before is not None and self.after is not None
        return CHANCE if both and not certain(self.before, self.after) else ""  # type: ignore[arg-type]  # both are there


@dataclass(frozen=True, slots=True)
class Event:
    """A published run of one framework and version, and what it changed.

    Attributes:
        source: the file.
        previous: the file that it is compared with: the run before it of the same version; None for a first run.
        changes: the cells that both have and that differ.
        added, removed: numbers of cells that only one of them has.
    """

    source: Published
    previous: Published | None
    changes: tuple[Change, ...]
    added: int
    removed: int

    @property
    def sentence(self) -> str:
        """The event in words."""
        cells = len(self.source.file.results)
        if self.previous is None:
            return f"first results of this version: {cells} cells"
        parts = [f"{len(self.changes)} of {cells} cells changed"]
        if self.added:
            parts.append(f"{self.added} new")
        if self.removed:
            parts.append(f"{self.removed} gone")
        return ", ".join(parts)


def certain(a: Result, b: Result) -> bool:
    """Return whether two outcomes differ by more than chance may do.

    A failure that some trials had and others of the same number may not have is chance while the intervals of the
    two results overlap. Results without trials differ in kind.
    """
    if a.trials.interval is None or b.trials.interval is None:
        return True
    return disjoint(a.trials.interval, b.trials.interval) or (
        a.trials.k == a.trials.n and b.trials.k == b.trials.n
    )


def outcome_words(result: Result) -> str:
    """Return a verdict with its anomaly in words."""
    return SIGNS[first_anomaly(result)][1] if result.verdict == "FAIL" else square((result,)).word


def outcome(result: Result) -> tuple[object, ...]:
    """Return what two results must share to be the same outcome."""
    return result.verdict, tuple(sorted(found.name for found in result.anomalies))


def cells(results: Sequence[Result]) -> Mapping[Coordinates, Result]:
    """Return results by their coordinates."""
    return {Coordinates(r.mode, r.scenario, r.point, use(r)): r for r in results}


def version_cells(collection: Collection, target: str, version: str) -> Mapping[Coordinates, Result]:
    """Return the newest results of a version by their coordinates, in the matrix's order."""
    found: list[Result] = []
    for mode in collection.modes(target, version):
        found.extend(collection.results(target, version, mode))
    return cells(found)


def courses(collection: Collection, target: str) -> tuple[tuple[Course, ...], int]:
    """Return the cells whose outcome differs between tested versions, and the number of cells that keep theirs.

    Cells that only one version has are neither.
    """
    versions = collection.versions(target)[::-1]
    by_version = {v: version_cells(collection, target, v) for v in versions}
    every = dict.fromkeys(at for found in by_version.values() for at in found)
    moving, still = [], 0
    for at in every:
        there = [(v, by_version[v][at]) for v in versions if at in by_version[v]]
        if len(there) < 2:
            continue
        spans = _spans(there)
        if len(spans) > 1:
            moving.append(Course(at, spans))
        else:
            still += 1
    return tuple(moving), still


def _spans(there: Sequence[tuple[str, Result]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for version, result in there:
        if spans and outcome(spans[-1].result) == outcome(result):
            spans[-1] = Span(spans[-1].since, version, spans[-1].result)
        else:
            spans.append(Span(version, version, result))
    return tuple(spans)


def differences(
    before: Mapping[Coordinates, Result], after: Mapping[Coordinates, Result]
) -> tuple[Change, ...]:
    """Return the cells that both have and whose outcomes differ."""
    return tuple(
        Change(at, before[at], now)
        for at, now in after.items()
        if at in before and outcome(before[at]) != outcome(now)
    )


def events(collection: Collection) -> tuple[Event, ...]:
    """Return every published run, newest first, with what it changed against the run before it."""
    found: list[Event] = []
    last: dict[tuple[str, str], Published] = {}
    for source in collection.files:
        if source.target in collection.hidden:
            continue
        key = source.target, source.version
        previous = last.get(key)
        last[key] = source
        now = cells(source.file.results)
        before = cells(previous.file.results) if previous else {}
        found.append(
            Event(
                source,
                previous,
                differences(before, now),
                len(now.keys() - before.keys()),
                len(before.keys() - now.keys()),
            )
        )
    return tuple(found[::-1])
