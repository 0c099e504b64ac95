"""A run that is broken off: nothing of it stays alive, and going on ends with the trials of an unbroken run."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest

from arena.journal import read_journal
from tests.checkout import Checkout, eventually

#: A resume of this control hangs until its limit of some seconds: there is always an agent to leave behind.
HANGING = (
    "run", "controls", "--scenario", "kill-mid-tool", "--mode", "hang", "--at", "after-effect@rest",
    "--jobs", "2", "--trials",
)  # fmt: skip
#: Seconds after which nothing may be left, and what a loaded machine needs to look.
GONE_S = 2.0


def trials_of(cli: Checkout) -> Counter[tuple[str, int]]:
    """Return how often each trial of the only run is in its journal."""
    _, records, _ = read_journal(cli.journal())
    return Counter((record.shot, record.number) for record in records)


def complete(cli: Checkout) -> bool:
    return read_journal(cli.journal())[2]


def under_way(cli: Checkout) -> bool:
    """Whether some trials have finished and an agent is alive."""
    return bool(list(cli.root.glob("build/runs/*.jsonl"))) and bool(trials_of(cli)) and bool(cli.agents())


def kill_harness(cli: Checkout, guardian: int) -> None:
    (harness,) = cli.harness() - {guardian}
    os.kill(harness, signal.SIGKILL)


def kill_guardian(_: Checkout, guardian: int) -> None:
    os.kill(guardian, signal.SIGKILL)


def kill_both(cli: Checkout, guardian: int) -> None:
    groups = {os.getpgid(pid) for pid in cli.harness()}
    assert os.getpgid(guardian) in groups
    for group in groups:
        os.killpg(group, signal.SIGKILL)


def interrupt_harness(cli: Checkout, guardian: int) -> None:
    del cli
    os.kill(guardian, signal.SIGINT)


def terminate_harness(cli: Checkout, guardian: int) -> None:
    del cli
    os.kill(guardian, signal.SIGTERM)


@pytest.mark.parametrize(
    "end", [kill_harness, kill_guardian, kill_both, interrupt_harness, terminate_harness]
)
def test_nothing_outlives_a_run_that_is_ended(cli: Checkout, end: Callable[[Checkout, int], None]) -> None:
    with cli.start(*HANGING, "5") as run:
        assert eventually(lambda: under_way(cli))
        started = cli.started()
        assert started
        end(cli, run.pid)
        gone = eventually(lambda: not cli.started(), GONE_S)
        assert gone, f"still alive: {cli.started()}"
        assert eventually(lambda: not cli.processes())


def test_a_run_whose_harness_was_killed_goes_on_to_the_trials_of_an_unbroken_run(cli: Checkout) -> None:
    with cli.start(*HANGING, "5") as run:
        assert eventually(lambda: under_way(cli))
        kill_harness(cli, run.pid)
        assert run.wait(60) == 128 + signal.SIGKILL
    before = trials_of(cli)
    assert 0 < len(before) < 5
    assert not complete(cli)
    done = cli.run("run", "--continue", "--json")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    after = trials_of(cli)
    assert sorted(number for _, number in after) == list(range(5))
    assert set(after.values()) == {1}
    assert before.items() <= after.items()
    assert complete(cli)


def test_a_run_that_is_killed_twice_still_ends_with_its_trials(cli: Checkout) -> None:
    with cli.start(*HANGING, "7") as run:
        assert eventually(lambda: under_way(cli))
        kill_both(cli, run.pid)
        run.wait(60)
    first = len(trials_of(cli))
    with cli.start("run", "--continue", "--jobs", "2") as run:
        assert eventually(lambda: len(trials_of(cli)) > first and cli.agents())
        kill_harness(cli, run.pid)
        run.wait(60)
    assert cli.run("run", "--continue").returncode == 0
    assert sorted(number for _, number in trials_of(cli)) == list(range(7))
    assert set(trials_of(cli).values()) == {1}


def test_an_interrupt_ends_with_130_and_says_how_to_go_on(cli: Checkout) -> None:
    with cli.start(*HANGING, "5") as run:
        assert eventually(lambda: under_way(cli))
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
        assert run.returncode == 130
    assert "plugpull run --continue" in said
    assert "Traceback" not in said
    assert not complete(cli)
    done = cli.run("run", "--continue")
    assert done.returncode == 0, done.stderr
    assert sorted(number for _, number in trials_of(cli)) == list(range(5))


def test_a_run_does_not_go_on_with_other_code(cli: Checkout) -> None:
    with cli.start(*HANGING, "5") as run:
        assert eventually(lambda: under_way(cli))
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    cli.adapter("controls", lambda text: text + "\n# changed\n")
    done = cli.run("run", "--continue")
    assert done.returncode == 2
    assert "have changed" in done.stderr


def test_a_complete_run_is_not_gone_on_with(cli: Checkout) -> None:
    quick = ("run", "controls", "--scenario", "kill-mid-tool", "--mode", "outbox", "--trials", "1")
    assert cli.run(*quick).returncode == 0
    done: subprocess.CompletedProcess[str] = cli.run("run", "--continue")
    assert done.returncode == 2
    assert "no unfinished run" in done.stderr
