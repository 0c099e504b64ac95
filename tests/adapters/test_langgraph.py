"""LangGraph 1.2.24 in real trials: what its modes do when they are killed, warm and cold."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.adapters import Adapter, load_adapter
from arena.cells import Shot, Wanted, select
from arena.journal import Record
from arena.runner import record_of
from arena.scenario import find_scenarios
from arena.targets import Target, learn, prepare, trial_plan
from harness.pool import TrialPool

ROOT = Path(__file__).resolve().parents[2]
VERSION = "1.2.24"
ADAPTER: Adapter = load_adapter(ROOT / "adapters" / "langgraph")
Targets = dict[tuple[str, str], Target]


@pytest.fixture(scope="session")
def langgraph(pool: TrialPool) -> Iterator[Targets]:
    """LangGraph in its locked environment, which is made if it is not there, with what warm starts preload."""
    target = prepare(ADAPTER, VERSION, ROOT / "build")
    yield {("langgraph", VERSION): learn(target, ("graph-sync", "functional-sync"), ROOT / "build", pool)}


def shots(mode: str, scenario: str, *points: str) -> tuple[Shot, ...]:
    wanted = Wanted((f"langgraph@{VERSION}",), (scenario,), (mode,), points)
    return select(wanted, {"langgraph": ADAPTER}, find_scenarios())


def run(
    pool: TrialPool, targets: Targets, shot: Shot, trials: int, *, cold: bool = False, tag: str = "t"
) -> list[Record]:
    items = [number % len(shot.scenario.items) for number in range(trials)]
    futures = [
        pool.submit(trial_plan(shot, number, item, targets, 60.0, cold=cold, tag=tag))
        for number, item in enumerate(items)
    ]
    return [
        record_of(shot, number, 1, item, future.result(timeout=240))
        for number, (item, future) in enumerate(zip(items, futures, strict=True))
    ]


def verdicts(records: list[Record]) -> set[tuple[str, str, tuple[str, ...], str]]:
    return {(key, j.verdict, j.anomalies, j.reason) for r in records for key, j in r.judged.items()}


@pytest.mark.parametrize("timing", ["rest", "once"])
def test_a_charge_that_was_not_recorded_is_made_once(
    pool: TrialPool, langgraph: Targets, timing: str
) -> None:
    (shot,) = shots("graph-sync", "kill-mid-tool", f"before-effect@{timing}")
    records = run(pool, langgraph, shot, 3)
    assert verdicts(records) == {("none", "PASS", (), ""), ("with", "PASS", (), "")}
    assert {r.exits for r in records} == {("killed 9", "exited 0")}


def test_a_charge_that_was_recorded_is_made_again_under_the_same_call_id(
    pool: TrialPool, langgraph: Targets
) -> None:
    (shot,) = shots("graph-sync", "kill-mid-tool", "after-effect@rest")
    records = run(pool, langgraph, shot, 3)
    assert verdicts(records) == {("none", "FAIL", ("duplicated",), ""), ("with", "PASS", (), "")}
    assert {r.key_kind for r in records} == {"call-id"}
    assert all(all(r.checks.values()) and r.checks for r in records)


def test_finished_work_does_not_run_again_in_8_of_8_jobs(pool: TrialPool, langgraph: Targets) -> None:
    shot = shots("graph-sync", "durable-state")[0]
    records = run(pool, langgraph, shot, len(shot.scenario.items))
    assert verdicts(records) == {("calls", "PASS", (), "")}
    assert {r.item for r in records} == set(range(8))
    for record in records:
        assert set(record.judged["calls"].counts.values()) == {1}


@pytest.mark.parametrize("mode", ["graph-sync", "functional-sync"])
def test_warm_and_cold_give_the_same_verdicts(pool: TrialPool, langgraph: Targets, mode: str) -> None:
    for shot in shots(mode, "kill-mid-tool", "before-effect@rest", "after-effect@rest"):
        warm = run(pool, langgraph, shot, 1, tag="warm")
        cold = run(pool, langgraph, shot, 1, cold=True, tag="cold")
        for records, kind in ((warm, "warm"), (cold, "cold")):
            assert records[0].history is not None
            started = [facts["start"] for _, _, event, facts in records[0].history if event == "leg-started"]
            assert started == [kind, kind]
        assert verdicts(warm) == verdicts(cold)
        assert warm[0].exits == cold[0].exits
        assert warm[0].judged["none"].counts == cold[0].judged["none"].counts


def test_an_exit_mode_is_documented_not_to_survive(pool: TrialPool, langgraph: Targets) -> None:
    (shot,) = shots("graph-exit", "kill-mid-tool", "after-effect@rest")
    (record,) = run(pool, langgraph, shot, 1)
    assert record.judged["none"].verdict == "FAIL"
    for anomaly in record.judged["none"].anomalies:
        promise = ADAPTER.promise(anomaly, VERSION, "graph-exit", "kill-mid-tool", shot.point, "none")
        assert promise is not None, anomaly
        assert promise.stance == "documents"
