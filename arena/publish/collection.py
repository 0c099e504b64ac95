"""Everything that was published, arranged: which results stand on which page. Reads files; writes nothing.

A sheet is what one evidence page shows: the results of one framework, version, mode and scenario, from the
newest run that has them. It knows adapters and scenarios by their descriptions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import packaging.version

from arena.adapters import Adapter, find_adapters
from arena.publish.text import slug
from arena.results import Result, ResultsFile, published
from arena.scenario import GROUPS, Scenario

#: The heading of scenarios that results have and this plugpull has not.
OTHER = "other"


class Place(NamedTuple):
    """The coordinates of an evidence page."""

    target: str
    version: str
    mode: str
    scenario: str

    @property
    def page(self) -> str:
        """The page's source file, below the site's root."""
        return "evidence/" + "/".join(slug(part) for part in self) + ".md"

    @property
    def data(self) -> str:
        """The page's results and witnesses as JSON, below the site's root."""
        return self.page.removesuffix(".md") + ".json"


@dataclass(frozen=True)
class Published:
    """A results file and where it lies below `results/`."""

    path: str
    file: ResultsFile

    @property
    def target(self) -> str:
        """The adapter that the file is about."""
        return self.path.split("/")[0]

    @property
    def version(self) -> str:
        """The framework's version."""
        return self.path.split("/")[1]

    @property
    def copy(self) -> str:
        """Where the site keeps its copy."""
        return "data/results/" + "/".join(slug(part) for part in self.path.split("/"))


@dataclass(frozen=True)
class Sheet:
    """What one evidence page shows."""

    place: Place
    results: tuple[Result, ...]
    source: Published


@dataclass(frozen=True)
class Collection:
    """All that the site is made from."""

    adapters: Mapping[str, Adapter]
    scenarios: Mapping[str, Scenario]
    files: tuple[Published, ...]

    @cached_property
    def sheets(self) -> Mapping[Place, Sheet]:
        """The newest results of each place."""
        found: dict[Place, Sheet] = {}
        for source in self.files:
            grouped: dict[Place, list[Result]] = {}
            for result in source.file.results:
                if result.target in self.hidden:
                    continue
                place = Place(result.target, result.version, result.mode, result.scenario)
                grouped.setdefault(place, []).append(result)
            for place, results in grouped.items():
                found[place] = Sheet(place, tuple(results), source)
        return found

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Controls: their verdicts are known, and they are nobody's choice."""
        return frozenset(name for name, adapter in self.adapters.items() if adapter.control)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Frameworks that have an adapter or results, by name: the order says nothing about them."""
        names = {p.target for p in self.sheets} | set(self.adapters)
        return tuple(sorted(names - self.hidden, key=lambda t: (self.name(t).lower(), t)))

    @cached_property
    def tested(self) -> tuple[str, ...]:
        """Frameworks that have results."""
        with_results = {p.target for p in self.sheets}
        return tuple(t for t in self.targets if t in with_results)

    def name(self, target: str) -> str:
        """Return a framework's name in words."""
        return self.adapters[target].name if target in self.adapters else target

    @cached_property
    def _versions(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, set[str]] = {}
        for place in self.sheets:
            found.setdefault(place.target, set()).add(place.version)
        return {t: tuple(sorted(versions, key=version_order)[::-1]) for t, versions in found.items()}

    def versions(self, target: str) -> tuple[str, ...]:
        """Return the versions of a framework that have results, newest first."""
        return self._versions[target]

    def newest(self, target: str) -> str:
        """Return the newest version of a framework that has results."""
        return self.versions(target)[0]

    def modes(self, target: str, version: str) -> tuple[str, ...]:
        """Return the modes of a version that have results, in the adapter's order."""
        found = {p.mode for p in self.sheets if (p.target, p.version) == (target, version)}
        listed = tuple(self.adapters[target].modes) if target in self.adapters else ()
        return (*(m for m in listed if m in found), *sorted(found - set(listed)))

    @cached_property
    def columns(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The groups of the matrix with their scenarios: those that have results."""
        found = {p.scenario for p in self.sheets}
        groups: dict[str, list[str]] = {group: [] for group in (*GROUPS, OTHER)}
        for name, scenario in self.scenarios.items():
            if name in found:
                groups[scenario.group].append(name)
        groups[OTHER].extend(sorted(found - set(self.scenarios)))
        return tuple((group, tuple(names)) for group, names in groups.items() if names)

    def question(self, scenario: str) -> str:
        """Return a scenario's question in a user's words."""
        return self.scenarios[scenario].question if scenario in self.scenarios else scenario

    def sheet(self, target: str, version: str, mode: str, scenario: str) -> Sheet | None:
        """Return the sheet of a place, or None where nothing was run."""
        return self.sheets.get(Place(target, version, mode, scenario))

    def results(self, target: str, version: str, mode: str) -> tuple[Result, ...]:
        """Return every result of a mode of a version, in the matrix's order."""
        found: list[Result] = []
        for _, names in self.columns:
            for name in names:
                sheet = self.sheet(target, version, mode, name)
                if sheet is not None:
                    found.extend(sheet.results)
        return tuple(found)


def collect(root: Path, scenarios: Mapping[str, Scenario]) -> Collection:
    """Read the results and adapters below `root`.

    Raises:
        ResultsError, AdapterError: a file that is not what it should be; the text names file and field.
    """
    folder = root / "results"
    files = tuple(
        Published(path.relative_to(folder).as_posix(), file) for path, file in published(folder).items()
    )
    adapters = find_adapters(root / "adapters") if (root / "adapters").is_dir() else {}
    return Collection(adapters, scenarios, files)


def version_order(version: str) -> tuple[int, packaging.version.Version, str]:
    """Return what versions are sorted by; a text that is no version comes first."""
    try:
        return 1, packaging.version.Version(version), version
    except packaging.version.InvalidVersion:
        return 0, packaging.version.Version("0"), version


def timing(point: str) -> str:
    """Return the variant that a point's text ends with: `rest` or `once`."""
    return point.rpartition("@")[2]


def timing_words(point: str) -> str:
    """Return a point's variant in words."""
    return {"rest": "at rest", "once": "at once"}.get(timing(point), timing(point))


def anchor(result: Result) -> str:
    """Return the anchor of a point on its evidence page."""
    return slug(f"{result.kill_point}-{timing(result.point)}".lower())


def anchors(results: Iterable[Result]) -> Mapping[str, str]:
    """Return an anchor for each point of a sheet, by the point's text; two points never share one."""
    found: dict[str, str] = {}
    for result in results:
        if result.point in found:
            continue
        wanted = anchor(result)
        found[result.point] = wanted if wanted not in found.values() else slug(result.point + " " + wanted)
    return found


def uses(results: Sequence[Result]) -> tuple[str | None, ...]:
    """Return the uses of the key among results: `none`, `with`, or None where calls count."""
    found = {use(r) for r in results}
    return tuple(u for u in ("none", "with", None) if u in found)


def use(result: Result) -> str | None:
    """Return a result's use of the key."""
    return None if result.key is None else "none" if result.key == "none" else "with"
