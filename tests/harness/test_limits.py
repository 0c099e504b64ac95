"""Limits: every leg ends in bounded time, and the history says which limit it was."""

import time
from pathlib import Path

import pytest

from harness import kernel
from harness.faults import Fault
from harness.plan import LegPlan
from harness.pool import TrialPool
from tests.trials import CHARGE, CHARGES, Trials, errors, exits, kill

HANGS_IN_RESUME = """
    import signal, sys, plugpull
    if sys.argv[1] == "resume":
        signal.pause()
    plugpull.effect("charge_card", order="o-1", amount=42)
"""
HANGS = "import signal\nsignal.pause()\n"


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_a_leg_that_meets_its_limit_after_the_strike_is_measured(trials: Trials, warm: bool) -> None:
    history = trials.run_twice(HANGS_IN_RESUME, kill(f"{CHARGE}.after"), warm=warm, leg_limit_s=2)
    assert not errors(history)
    (limit,) = history.of("limit")
    assert (limit.leg, limit["which"], limit["limit_s"]) == (1, "leg", 2)
    assert limit["seconds"] >= 2
    assert exits(history)[1] == ("killed", 9)
    assert history.events[-1].kind == "closed"


def test_a_leg_that_meets_its_limit_before_the_first_strike_is_an_error(trials: Trials) -> None:
    history = trials.run_twice(HANGS, kill(f"{CHARGE}.after"), leg_limit_s=1)
    assert len(errors(history)) == 1
    assert len(history.of("leg-started")) == 1


def test_a_limit_is_no_error_where_no_fault_is_planned(trials: Trials) -> None:
    history = trials.run_once(HANGS, leg_limit_s=1)
    assert not errors(history)
    assert [e["which"] for e in history.of("limit")] == ["leg"]


def test_a_leg_at_its_limit_leaves_no_child(trials: Trials) -> None:
    source = """
        import os, signal, plugpull
        child = os.fork()
        if child:
            plugpull.hello(child=child)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
    """
    history = trials.run_once(source, leg_limit_s=2)
    (hello,) = history.of("hello")
    assert kernel.process_line(int(hello["said_child"])) is None


def test_what_a_leg_said_before_its_limit_is_kept(trials: Trials) -> None:
    source = "import signal, sys\nprint('waiting for a lock', file=sys.stderr, flush=True)\nsignal.pause()\n"
    (ended,) = trials.run_once(source, leg_limit_s=2).of("leg-ended")
    assert ended["stderr"] == "waiting for a lock"


def test_the_ceiling_cuts_a_trial_and_the_history_says_so(tmp_path: Path) -> None:
    began = time.monotonic()
    with TrialPool(2, 3) as pool:
        trials = Trials(pool, tmp_path)
        future = trials.submit([LegPlan("start", trials.target(HANGS))], leg_limit_s=600)
        history = future.result(timeout=120)
    assert time.monotonic() - began < 60
    assert [e["which"] for e in history.of("limit")] == ["ceiling"]
    assert errors(history) == ["the run's ceiling cut this trial"]
    assert exits(history) == [("killed", 9)]


def test_the_ceiling_cuts_a_trial_whose_fault_has_struck(tmp_path: Path) -> None:
    with TrialPool(2, 3) as pool:
        history = Trials(pool, tmp_path).run_twice(HANGS_IN_RESUME, kill(f"{CHARGE}.after"), leg_limit_s=600)
    assert errors(history) == ["the run's ceiling cut this trial"]


def test_closing_the_pool_ends_what_still_runs(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    source = f"import os, signal\nopen({str(file)!r} + '.new', 'w').write(str(os.getpid()))\n"
    source += f"os.rename({str(file)!r} + '.new', {str(file)!r})\nsignal.pause()\n"
    pool = TrialPool(2, 600)
    trials = Trials(pool, tmp_path)
    trials.submit([LegPlan("start", trials.target(source))])
    end = time.monotonic() + 60
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)
    pid = int(file.read_text())
    assert kernel.process_line(pid) is not None
    pool.close()
    line = kernel.process_line(pid)
    assert line is None or line.state in "ZX"
    assert not pool.directory.exists()


def test_closing_a_pool_twice_is_no_error(tmp_path: Path) -> None:
    pool = TrialPool(1, 600)
    Trials(pool, tmp_path).run_once(CHARGES)
    pool.close()
    pool.close()


def test_many_trials_at_once_do_not_mix(trials: Trials) -> None:
    command = trials.target(CHARGES, warm=True)
    faults: tuple[Fault, ...] = (kill(f"{CHARGE}.after"),)
    legs = [LegPlan("start", command, faults=faults), LegPlan("resume", command)]
    futures = [trials.submit(legs) for _ in range(12)]
    for future in futures:
        history = future.result(timeout=240)
        assert not errors(history)
        assert [len(history.of("recorded", leg=leg)) for leg in (0, 1)] == [1, 1]
    pids = [e["pid"] for f in futures for e in f.result().of("leg-started")]
    assert len(set(pids)) == len(pids)
