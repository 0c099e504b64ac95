"""The matrix: rows of framework and mode, columns of scenarios, squares by use of the key. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.publish.collection import Collection, Place, anchors, timing, use
from arena.publish.outcomes import Square, square
from arena.publish.recommendation import Recommendation, recommend
from arena.results import Result


@dataclass(frozen=True, slots=True)
class Link:
    """A square and where it leads.

    Attributes:
        square: what it says.
        key: `none`, `with`, `both` (with and without a key alike) or `calls` (the rule counts calls).
        page: the evidence page's source; empty where nothing was run.
        anchor: the point on it.
    """

    square: Square
    key: str
    page: str
    anchor: str

    @property
    def label(self) -> str:
        """What is said of the key before the square."""
        return {"none": "no key", "with": "key", "both": "key or not"}.get(self.key, "")


@dataclass(frozen=True, slots=True)
class Row:
    """A mode's row: its squares by scenario."""

    mode: str
    page: str
    recommended: str
    columns: tuple[tuple[str, tuple[Link, ...]], ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """A framework's rows."""

    target: str
    version: str
    recommendation: Recommendation | None
    rows: tuple[Row, ...]


def home(collection: Collection) -> tuple[Rows, ...]:
    """Return the home page's matrix: the newest version of every framework with results."""
    return tuple(_rows(collection, target) for target in collection.tested)


def _rows(collection: Collection, target: str) -> Rows:
    version = collection.newest(target)
    best = recommend(collection, target)
    rows = tuple(
        Row(
            mode,
            target,
            best.key_words if best and best.mode == mode else "",
            tuple(
                (name, links(collection, Place(target, version, mode, name)))
                for _, names in collection.columns
                for name in names
            ),
        )
        for mode in collection.modes(target, version)
    )
    return Rows(target, version, best, rows)


def links(collection: Collection, place: Place, points: Sequence[str] | None = None) -> tuple[Link, ...]:
    """Return the squares of a place, one for each use of the key; one for both where they say the same.

    Args:
        collection: all that is published.
        place: framework, version, mode and scenario.
        points: only these points, as text with their timing.
    """
    sheet = collection.sheets.get(place)
    if sheet is None:
        return (Link(square(()), "calls", "", ""),)
    results = [r for r in sheet.results if points is None or r.point in points]
    where = anchors(sheet.results)
    found: list[Link] = []
    for key in ("none", "with", None):
        mine = [r for r in results if use(r) == key]
        if mine:
            found.append(_link(mine, key or "calls", place, where))
    if [link.key for link in found] == ["none", "with"] and found[0].square.said == found[1].square.said:
        found = [_link(results, "both", place, where)]
    return tuple(found) or (Link(square(()), "calls", "", ""),)


def _link(results: Sequence[Result], key: str, place: Place, where: Mapping[str, str]) -> Link:
    shown = square(results)
    assert shown.result is not None
    return Link(shown, key, place.page, where[shown.result.point])


@dataclass(frozen=True, slots=True)
class PointRow:
    """A point of a scenario in a detailed table: its squares at rest, at once, or both where they agree."""

    scenario: str
    point: str
    name: str
    timings: tuple[tuple[str, tuple[Link, ...]], ...]


def points(collection: Collection, place: Place) -> tuple[PointRow, ...]:
    """Return the rows of a detailed table: one for each point, timings side by side."""
    sheet = collection.sheets.get(place)
    if sheet is None:
        return ()
    by_point: dict[tuple[str, str], dict[str, list[str]]] = {}
    for r in sheet.results:
        base = r.point.rpartition("@")[0] or r.point
        by_point.setdefault((r.kill_point, base), {}).setdefault(timing(r.point), []).append(r.point)
    return tuple(
        PointRow(
            place.scenario,
            base,
            name,
            tuple((when, links(collection, place, texts)) for when, texts in timings.items()),
        )
        for (name, base), timings in by_point.items()
    )
