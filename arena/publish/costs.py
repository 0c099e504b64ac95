"""What a mode costs, as far as the results measured it: bytes saved and CPU time of the first leg. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from arena.publish.collection import Collection
from arena.results import Overhead


@dataclass(frozen=True, slots=True)
class Cost:
    """A mode's cost in one scenario and point, as medians over variants.

    Attributes:
        mode: the mode.
        bytes: bytes in the working directory when the first leg ended; None when unknown.
        cpu_s: CPU seconds of the first leg; None when unknown.
        cells: cells that the medians are over.
    """

    mode: str
    bytes: int | None
    cpu_s: float | None
    cells: int


@dataclass(frozen=True, slots=True)
class Costs:
    """The modes of a version, compared at one scenario."""

    scenario: str
    rows: tuple[Cost, ...]


def overheads(collection: Collection, target: str, version: str) -> tuple[Overhead, ...]:
    """Return what each mode's durability cost in time, from the newest run that measured it."""
    found: dict[str, Overhead] = {}
    for source in collection.files:
        if (source.target, source.version) == (target, version):
            found.update({measured.mode: measured for measured in source.file.run.overheads})
    return tuple(found[mode] for mode in collection.modes(target, version) if mode in found)


def costs(collection: Collection, target: str, version: str) -> tuple[Costs, ...]:
    """Return the modes' costs for each scenario that measured some, in the matrix's order."""
    found = []
    for _, names in collection.columns:
        for name in names:
            rows = []
            for mode in collection.modes(target, version):
                sheet = collection.sheet(target, version, mode, name)
                results = sheet.results if sheet else ()
                sizes = [r.state_bytes for r in results if r.state_bytes is not None]
                seconds = [r.legs[0].cpu_s for r in results if r.legs and r.legs[0].cpu_s is not None]
                if sizes or seconds:
                    rows.append(
                        Cost(
                            mode,
                            round(median(sizes)) if sizes else None,
                            round(median(seconds), 3) if seconds else None,
                            len(results),
                        )
                    )
            if rows:
                found.append(Costs(name, tuple(rows)))
    return tuple(found)
