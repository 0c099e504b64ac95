"""An evidence page's model: the points of a sheet with timelines, kill checks, docs and numbers. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arena.publish.collection import Collection, Sheet, anchors, timing_words, use
from arena.publish.outcomes import STANCES, Square, shown_outcome, square, stances
from arena.report import say, who
from arena.results import Result, ResultsFile, Seen, Sentence, to_text
from arena.words import MEANING

#: Timelines of one point: one for each kind of outcome, and never more than this.
_TIMELINES = 6
_MALFORMED = (KeyError, TypeError, AttributeError, IndexError, ValueError)


@dataclass(frozen=True, slots=True)
class Moment:
    """A line of a timeline: seconds, the column it stands in, what happened."""

    at: str
    column: int
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A trial's history as a table: a column for each process, then one for provider and harness."""

    heading: str
    columns: tuple[str, ...]
    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class Stance:
    """An anomaly, its meaning, and the sentence of the docs about it."""

    name: str
    meaning: str
    stance: str
    words: str
    sentence: Sentence | None


@dataclass(frozen=True, slots=True)
class CellShown:
    """One cell: what it says, and its numbers in a sentence."""

    result: Result
    square: Square
    key: str
    trials: str
    stances: tuple[Stance, ...]

    @property
    def short(self) -> str:
        """The use of the key in a word or two."""
        return {"none": "no key", "with": "key"}.get(use(self.result) or "", "")


@dataclass(frozen=True, slots=True)
class PointShown:
    """A point of an evidence page."""

    anchor: str
    name: str
    timing: str
    point: str
    cells: tuple[CellShown, ...]
    checks: tuple[tuple[str, bool], ...]
    facts: tuple[tuple[str, str], ...]
    timelines: tuple[Timeline, ...]
    stderr: str
    reproduce: str


def points_of(sheet: Sheet) -> tuple[PointShown, ...]:
    """Return the points of a sheet, in the order of its results."""
    where = anchors(sheet.results)
    by_point: dict[str, list[Result]] = {}
    for result in sheet.results:
        by_point.setdefault(result.point, []).append(result)
    return tuple(_point(where[text], text, results, sheet) for text, results in by_point.items())


def _point(anchor: str, text: str, results: Sequence[Result], sheet: Sheet) -> PointShown:
    file = sheet.source.file
    main = min(results, key=lambda r: ("FAIL", "ERROR", "PASS", "UNSUPPORTED").index(r.verdict))
    outcome = shown_outcome(main)
    return PointShown(
        anchor,
        main.kill_point,
        timing_words(text),
        text,
        tuple(_cell(r, file) for r in results),
        tuple(outcome.checks.items()) if outcome else (),
        tuple(_facts(main)),
        _timelines(results, file),
        str(main.evidence.get("stderr", "")),
        main.reproduce,
    )


def docs_of(points: Sequence[PointShown]) -> tuple[tuple[Stance, tuple[str, ...]], ...]:
    """Return what the docs say of a page's anomalies, each sentence once, with the cells that it is about."""
    found: dict[Stance, dict[str, None]] = {}
    for point in points:
        for cell in point.cells:
            where = f"{point.name} {point.timing}" + (f", {cell.short}" if cell.short else "")
            for stance in cell.stances:
                found.setdefault(stance, {})[where] = None
    return tuple((stance, tuple(where)) for stance, where in found.items())


def _cell(result: Result, file: ResultsFile) -> CellShown:
    key = {"none": "without a key", "with": f"with a key ({result.key})"}.get(
        use(result) or "", "calls counted"
    )
    shown = tuple(
        Stance(name, MEANING[name], stance, STANCES[stance], file.promises.get(promise or ""))
        for name, stance, promise in stances(result)
    )
    return CellShown(result, square((result,)), key, _trials(result), shown)


def _trials(result: Result) -> str:
    t = result.trials
    if result.verdict == "UNSUPPORTED":
        return "not run"
    if t.interval is None:
        return f"no trial could be judged; {t.errors} ended in an ERROR"
    low, high = t.interval
    parts = [
        f"{t.k} of {t.n} trials failed; the chance of failure is between {low:.1%} and {high:.1%} ({t.method})"
    ]
    if t.differing:
        parts.append(f"trials differed, so the interval is about {t.n} fresh ones")
    if t.score:
        parts.append(f"{t.score} items passed in every trial")
    if t.replaced or t.errors:
        parts.append(f"{t.replaced} ERROR trials were replaced, {t.errors} were not")
    return "; ".join(parts)


def _facts(result: Result) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    kill = result.evidence.get("kill")
    if isinstance(kill, dict):
        names = {
            "pid": "process of the first leg",
            "group": "process group that was struck",
            "holders": "who held the request (process, group)",
            "status": "wait status",
            "rested": "every thread had come to rest",
            "rest_s": "seconds until rest",
            "closed_after_s": "seconds until the held connection closed",
        }
        facts.extend((names.get(k, str(k)), _plain(v)) for k, v in kill.items() if k != "leg")
    if result.mode_read is not None:
        asked, found = result.mode_read.get("asked", "?"), result.mode_read.get("found", "?")
        facts.append(("mode read back", f"asked for {asked}, found {found}"))
    if result.state_bytes is not None:
        facts.append(("bytes saved when the first leg ended", f"{result.state_bytes:,}"))
    for number, leg in enumerate(result.legs, 1):
        said = [leg.word, f"{leg.start} start", f"hash seed {leg.hash_seed}"]
        if leg.version:
            said.insert(1, f"version {leg.version}")
        if leg.cpu_s is not None:
            said.append(f"{leg.cpu_s:.3f} s of CPU")
        if leg.limit:
            said.append(f"ended by the limit of its {leg.limit}")
        facts.append((f"process {number}", ", ".join(said)))
    if result.barrier:
        facts.append(("barrier left because", ", ".join(result.barrier)))
    if result.boundaries:
        facts.append(("boundaries", ", ".join(f"{k} {v}" for k, v in result.boundaries.items())))
    return facts


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _timelines(results: Sequence[Result], file: ResultsFile) -> tuple[Timeline, ...]:
    kinds: dict[tuple[str, tuple[str, ...]], tuple[Seen, list[str]]] = {}
    taken: dict[str, tuple[str, tuple[str, ...]]] = {}
    for result in results:
        key = {"none": "without a key", "with": "with a key"}.get(use(result) or "", "")
        for seen in result.trials.outcomes:
            if seen.witness not in file.witnesses:
                continue
            kind = taken.get(seen.witness, (seen.verdict, seen.anomalies))
            said = " ".join((seen.verdict, key)) + (
                f": {', '.join(seen.anomalies)}" if seen.anomalies else ""
            )
            if kind in kinds:
                if said not in kinds[kind][1]:
                    kinds[kind][1].append(said)
                continue
            taken[seen.witness] = kind
            kinds[kind] = seen, [said]
    return tuple(
        timeline(" · ".join(said), file.witnesses[seen.witness])
        for seen, said in list(kinds.values())[:_TIMELINES]
    )


def timeline(heading: str, history: Sequence[Sequence[Any]]) -> Timeline:
    """Return a history as a table; an event that is not as expected is shown as it is, never dropped."""
    legs = sorted({row[1] for row in history if len(row) == 4 and type(row[1]) is int})[:8]
    columns = (*(who(leg) for leg in legs), "provider and harness")
    return Timeline(heading, columns, tuple(_moment(row, legs) for row in history))


def _moment(row: Sequence[Any], legs: Sequence[int]) -> Moment:
    try:
        at, leg, kind, facts = row
        text = say(kind, facts)
        outside = leg is None or kind in ("recorded", "checked", "struck", "held")
        column = len(legs) if outside else legs.index(leg)
        if outside and leg is not None and len(legs) > 1 and kind in ("checked", "struck", "held"):
            text = f"{who(leg)} {text}" if kind in ("held", "struck") else text
        return Moment(f"{at:.3f}", column, text, _known_kind(kind))
    except _MALFORMED:
        return Moment("?", len(legs), json.dumps(row, ensure_ascii=False, default=str), "other")


def _known_kind(kind: object) -> str:
    return (
        str(kind)
        if kind in ("recorded", "struck", "held", "checked", "leg-started", "leg-ended")
        else "other"
    )


def sheet_json(sheet: Sheet) -> str:
    """Return a sheet as a results file of its own: its results, and the sentences and witnesses they name."""
    file = sheet.source.file
    recipes = {r.recipe for r in sheet.results}
    promises = {found.promise for r in sheet.results for found in r.anomalies}
    witnesses = {seen.witness for r in sheet.results for seen in r.trials.outcomes}
    part = file.model_copy(
        update={
            "results": sheet.results,
            "recipes": {k: v for k, v in file.recipes.items() if k in recipes},
            "promises": {k: v for k, v in file.promises.items() if k in promises},
            "witnesses": {k: v for k, v in file.witnesses.items() if k in witnesses},
        }
    )
    return to_text(part)


def versions_line(collection: Collection, sheet: Sheet) -> tuple[tuple[str, str], ...]:
    """Return the versions whose page of the same mode and scenario exists, with that page's source."""
    place = sheet.place
    return tuple(
        (version, other.page)
        for version in collection.versions(place.target)
        if (other := place._replace(version=version)) in collection.sheets
    )


def facts_of_run(file: ResultsFile) -> Mapping[str, str]:
    """Return the facts of a run in words."""
    run = file.run
    said = {
        "run": run.id,
        "day": run.date,
        "plugpull's commit": run.harness_commit,
        "machine": f"{run.platform}, kernel {run.kernel}, {run.cores} cores, {run.jobs} trials at once",
        "load": f"{run.load[0]} when it began, {run.load[1]} when it ended",
        "Python of the harness": run.python,
        "file system": run.file_system,
        "sandbox": run.sandbox,
        "limit of a leg": f"{run.leg_limit_s:g} s",
        "controls": _ratio(run.controls, "cells", "as_known", "as known"),
        "warm starts audited against cold": _ratio(run.audit, "cells", "agreed", "agreed"),
    }
    for number, engine in enumerate(run.engines, 1):
        said[f"engine {number}"] = ", ".join(f"{k} {v}" for k, v in engine.items())
    return said


def _ratio(counts: dict[str, int] | None, all_: str, good: str, word: str) -> str:
    if counts is None:
        return "not run"
    return f"{counts.get(good, '?')} of {counts.get(all_, '?')} cells {word}"
