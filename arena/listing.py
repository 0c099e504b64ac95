"""`plugpull list`: what can be run, and what is UNSUPPORTED and why. Prints only."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from arena.adapters import Adapter
from arena.scenario import Scenario


def print_listing(adapters: Mapping[str, Adapter], scenarios: Mapping[str, Scenario]) -> None:
    """Print adapters with versions and modes, scenarios with their points, and what is not supported."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print("ADAPTERS")
    for adapter in adapters.values():
        kind = " (control)" if adapter.control else ""
        console.print(f"\n{adapter.id}{kind}: {adapter.summary}")
        console.print(f"  versions: {', '.join(v.version for v in adapter.versions)}")
        for name, mode in adapter.modes.items():
            versions = f" [{mode.versions}]" if mode.versions else ""
            console.print(f"  {name}{versions}: {mode.summary}")
            if mode.slow:
                console.print(f"    only with --full or --mode {name}: {mode.slow}")
        for entry in adapter.unsupported:
            what = entry.capability or ", ".join(entry.scenarios)
            console.print(f"  UNSUPPORTED {what} in {', '.join(entry.modes)}: {entry.reason} {entry.url}")
    console.print("\nSCENARIOS")
    for scenario in scenarios.values():
        console.print(f"\n{scenario.name}: {scenario.question}")
        for case in scenario.cases:
            console.print(f"  {case.name}: {', '.join(f'{case.point}@{timing}' for timing in case.timings)}")
