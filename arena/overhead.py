"""What durability costs in time: the same unharmed run with it and without it, in turns, on one machine.

Times differ between machines, so what counts is the ratio. Knows adapters and the harness; judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from arena.cells import Shot
from arena.results import Overhead
from arena.targets import LEARNING, Target, engine_variables, finished, learn, start_engines
from harness.engines import Engines
from harness.history import History
from harness.plan import LegPlan, TrialPlan
from harness.pool import TrialPool

#: Runs of each kind; their medians are compared.
RUNS = 11


def measure_overheads(
    shots: Sequence[Shot], targets: Mapping[tuple[str, str], Target], build: Path, ceiling_s: float
) -> dict[tuple[str, str], tuple[Overhead, ...]]:
    """Return what each mode that names a baseline costs, by (adapter, version).

    A mode some of whose runs did not finish is left out: a time of something else is no time.
    """
    prepared = dict(targets)
    chosen = {
        (s.adapter.id, s.version, s.mode): s
        for s in shots
        if s.adapter.modes[s.mode].baseline and not s.lacking and (s.adapter.id, s.version) in targets
    }
    found: dict[tuple[str, str], list[Overhead]] = {}
    with Engines() as engines, TrialPool(1, ceiling_s) as pool:
        failures = start_engines(tuple(chosen.values()), prepared, engines)
        for adapter, version, mode in chosen:
            engine = chosen[adapter, version, mode].adapter.modes[mode].engine
            if (adapter, f"engine {engine}") in failures:
                continue
            target = learn(prepared[adapter, version], [mode], build, pool)
            measured = _measure(target, mode, pool)
            if measured is not None:
                found.setdefault((adapter, version), []).append(measured)
    return {key: tuple(values) for key, values in found.items()}


def _measure(target: Target, mode: str, pool: TrialPool) -> Overhead | None:
    with_it: list[tuple[float, float]] = []
    without: list[tuple[float, float]] = []
    for number in range(RUNS):
        for kind, times in (("on", with_it), ("off", without)):
            history = pool.submit(_plan(target, mode, kind, number)).result()
            if not finished(history):
                return None
            times.append(_times(history))
    baseline = target.adapter.modes[mode].baseline
    assert baseline is not None
    return Overhead(
        mode=mode,
        baseline=baseline,
        runs=RUNS,
        seconds=_medians(with_it, without, 0),
        cpu_s=_medians(with_it, without, 1),
    )


def _plan(target: Target, mode: str, kind: str, number: int) -> TrialPlan:
    trial = f"overhead-{target.adapter.id}-{target.version}-{mode}-{kind}-{number}".replace(".", "-")
    environment = {"PLUGPULL_MODE": mode, **engine_variables(target, mode, trial)}
    if kind == "off":
        environment["PLUGPULL_DURABILITY"] = "off"
    return TrialPlan(trial, LEARNING, ((LegPlan("start", target.command),),), {"a": "1"}, environment)


def _times(history: History) -> tuple[float, float]:
    ended = history.of("leg-ended")[-1]
    return float(ended["seconds"]), float(ended["cpu_s"])


def _medians(
    with_it: Sequence[tuple[float, float]], without: Sequence[tuple[float, float]], which: int
) -> tuple[float, float]:
    return round(median(t[which] for t in with_it), 4), round(median(t[which] for t in without), 4)
