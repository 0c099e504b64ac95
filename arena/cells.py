"""Cells and shots: the coordinates of the matrix. Pure data; runs nothing.

A shot is one adapter, version, mode, scenario, point and timing; its trials are shared by its cells, which
differ in the use of the key only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from arena.adapters import Adapter, KeyUse, Unsupported
from arena.scenario import Case, Scenario
from harness.faults import Timing
from harness.history import canonical


class SelectionError(Exception):
    """Something was asked for that does not exist; the text names it and what there is."""


@dataclass(frozen=True, slots=True)
class Shot:
    """What a trial is an instance of.

    Attributes:
        adapter: the adapter.
        version: one of its versions.
        mode: one of that version's modes.
        scenario: the scenario.
        case: the scenario's point.
        timing: the point's variant.
    """

    adapter: Adapter
    version: str
    mode: str
    scenario: Scenario
    case: Case
    timing: Timing | None

    @property
    def point(self) -> str:
        """The point with its timing, e.g. `effect:charge_card#1.after@rest`."""
        return f"{self.case.point}@{self.timing}" if self.timing else self.case.point

    @property
    def id(self) -> str:
        """A hash of the coordinates."""
        return coordinates_id(
            {
                "adapter": self.adapter.id,
                "version": self.version,
                "mode": self.mode,
                "scenario": self.scenario.name,
                "point": self.point,
            }
        )

    @property
    def label(self) -> str:
        """The coordinates in words."""
        return f"{self.adapter.id}@{self.version} {self.mode} {self.scenario.name} {self.point}"

    @property
    def keys(self) -> tuple[KeyUse | None, ...]:
        """The uses of the key that it has cells for; (None,) where rules count calls."""
        return ("none", "with") if self.scenario.keys == "both" else (None,)

    def cell_id(self, key: KeyUse | None) -> str:
        """Return the id of the cell of this shot with this use of the key."""
        return coordinates_id({"shot": self.id, "key": key})

    def needs(self, key: KeyUse | None) -> tuple[str, ...]:
        """Return the capabilities of a framework that a cell needs.

        `resume` is one of them unless the resume is left out where the start did not fail.
        """
        legs = [leg for stage in self.case.stages for leg in stage]
        resumes = any(leg.word == "resume" and leg.only == "always" for leg in legs)
        return (
            ("approval",) * self.case.approval
            + ("session-store",) * self.case.store
            + ("tool-call-id",) * (key == "with")
            + ("resume",) * resumes
        )

    def lacks(self, key: KeyUse | None) -> Unsupported | None:
        """Return why a cell is not supported, or None."""
        return self.adapter.lacks(self.version, self.mode, self.scenario.name, self.point, self.needs(key))

    @property
    def lacking(self) -> Unsupported | None:
        """Why none of its cells is supported, or None when trials make sense."""
        found = [self.lacks(key) for key in self.keys]
        return found[0] if all(found) else None

    @property
    def other_version(self) -> str | None:
        """The version that an upgrade's resume runs under: the newest; for the newest, the one before it."""
        listed = [v.version for v in self.adapter.versions]
        there = [v for v in listed if self.mode in self.adapter.modes_of(v) and v != self.version]
        return there[0] if there else None

    @property
    def reproduce(self) -> str:
        """The command that runs this shot."""
        return (
            f"plugpull run {self.adapter.id}@{self.version} --scenario {self.scenario.name} "
            f"--mode {self.mode} --at '{self.point}'"
        )


def coordinates_id(coordinates: Mapping[str, object]) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of coordinates."""
    return hashlib.sha256(canonical(dict(coordinates)).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a command asks to run; empty means all (of `versions`: the newest).

    Slow modes are left out unless they are named, or `full` is set.
    """

    targets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    full: bool = False


def select(
    wanted: Wanted, adapters: Mapping[str, Adapter], scenarios: Mapping[str, Scenario]
) -> tuple[Shot, ...]:
    """Return the shots that are wanted, in a stable order.

    A target is `ADAPTER` (its newest version), `ADAPTER@VERSION` or `ADAPTER@all`. Without targets every adapter
    that is no control runs in its newest version.

    Raises:
        SelectionError: an adapter, version, mode, scenario or point that does not exist.
    """
    names = wanted.targets or tuple(name for name, adapter in adapters.items() if not adapter.control)
    chosen_scenarios = _pick("scenario", wanted.scenarios, scenarios)
    shots: list[Shot] = []
    known_modes: set[str] = set()
    for name in names:
        adapter_name, _, version_text = name.partition("@")
        adapter = _one("adapter", adapter_name, adapters)
        for version in _versions(adapter, version_text):
            has = adapter.modes_of(version)
            known_modes.update(has)
            modes = [m for m in has if _chosen(m, adapter, wanted)]
            for mode in modes:
                for scenario in chosen_scenarios:
                    mine = tuple(
                        Shot(adapter, version, mode, scenario, case, timing)
                        for case in scenario.cases
                        for timing in case.timings
                    )
                    shots.extend(s for s in mine if not scenario.upgrades or s.other_version is not None)
    for mode in wanted.modes:
        if mode not in known_modes:
            raise SelectionError(f"no mode {mode!r}; there are {_listed(known_modes)}")
    return _at(tuple(shots), wanted.points)


def _chosen(mode: str, adapter: Adapter, wanted: Wanted) -> bool:
    if wanted.modes:
        return mode in wanted.modes
    return wanted.full or not adapter.modes[mode].slow


def _at(shots: tuple[Shot, ...], points: tuple[str, ...]) -> tuple[Shot, ...]:
    if not points:
        return shots
    for point in points:
        if not any(_is_at(shot, point) for shot in shots):
            there = {shot.point for shot in shots} | {shot.case.name for shot in shots}
            raise SelectionError(f"no point {point!r}; there are {_listed(there)}")
    return tuple(shot for shot in shots if any(_is_at(shot, point) for point in points))


def _is_at(shot: Shot, point: str) -> bool:
    return point in (shot.point, shot.case.point, shot.case.name, f"{shot.case.name}@{shot.timing}")


def _versions(adapter: Adapter, text: str) -> tuple[str, ...]:
    if text == "all":
        return tuple(v.version for v in adapter.versions)
    if not text:
        return (adapter.versions[0].version,)
    if text not in {v.version for v in adapter.versions}:
        raise SelectionError(
            f"{adapter.id} has no version {text!r}; it lists {_listed(v.version for v in adapter.versions)}"
        )
    return (text,)


def _pick(what: str, names: tuple[str, ...], there: Mapping[str, Scenario]) -> tuple[Scenario, ...]:
    if not names:
        return tuple(there.values())
    for name in names:
        if name not in there:
            raise SelectionError(f"no {what} {name!r}; there are {_listed(there)}")
    return tuple(scenario for name, scenario in there.items() if name in names)


def _one(what: str, name: str, there: Mapping[str, Adapter]) -> Adapter:
    if name not in there:
        raise SelectionError(f"no {what} {name!r}; there are {_listed(there)}")
    return there[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
