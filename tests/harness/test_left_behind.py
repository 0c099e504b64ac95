"""What an agent leaves behind: found wherever it went, ended, recorded, and its late charges counted."""

import signal
import subprocess
import sys

import pytest

from harness import kernel
from harness.history import History
from harness.plan import LegPlan
from tests.trials import CHARGE, Trials, errors, exits, kill, said

BOTH = pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
#: A process of another session, two forks away from the agent; it says who it is and sleeps.
DAEMON = """
    import os, signal, sys, plugpull
    def daemon(work):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(writer, str(os.getpid()).encode())
                work()
            os._exit(0)
        os.wait()
        plugpull.hello(daemon=os.read(reader, 32).decode())
"""


def dead(pid: int) -> bool:
    line = kernel.process_line(pid)
    return line is None or line.state in "ZX"


def daemon_pid(history: History) -> int:
    return int(said(history)["daemon"])


@BOTH
def test_a_daemon_is_found_and_ended(trials: Trials, warm: bool) -> None:
    source = DAEMON + "    daemon(signal.pause)\n    plugpull.answer('x')\n"
    history = trials.run_once(source, warm=warm)
    assert daemon_pid(history) in [e["pid"] for e in history.of("left-behind")]
    assert dead(daemon_pid(history))
    (left,) = history.of("left-behind")
    assert (left["in_group"], left["ended"]) == (False, "harness")


@BOTH
def test_a_daemon_is_found_after_a_kill(trials: Trials, warm: bool) -> None:
    source = DAEMON + "    daemon(signal.pause)\n    plugpull.effect('charge_card', order='o-1', amount=42)\n"
    history = trials.run_once(source, kill(f"{CHARGE}.after"), warm=warm)
    assert not errors(history)
    assert daemon_pid(history) in [e["pid"] for e in history.of("left-behind")]
    assert dead(daemon_pid(history))


@BOTH
def test_a_daemon_that_executed_with_an_empty_environment_is_found(trials: Trials, warm: bool) -> None:
    source = (
        DAEMON
        + "    daemon(lambda: os.execve('/bin/sleep', ['sleep', '600'], {}))\n    plugpull.answer('x')\n"
    )
    history = trials.run_once(source, warm=warm)
    assert daemon_pid(history) in [e["pid"] for e in history.of("left-behind")]
    assert dead(daemon_pid(history))


@BOTH
def test_a_daemon_that_executed_with_an_empty_environment_is_found_after_a_kill(
    trials: Trials, warm: bool
) -> None:
    source = DAEMON + (
        "    daemon(lambda: os.execve('/bin/sleep', ['sleep', '600'], {}))\n"
        "    plugpull.effect('charge_card', order='o-1', amount=42)\n"
    )
    history = trials.run_once(source, kill(f"{CHARGE}.after"), warm=warm)
    assert not errors(history)
    assert daemon_pid(history) in [e["pid"] for e in history.of("left-behind")]
    assert dead(daemon_pid(history))


@BOTH
def test_what_was_left_behind_is_reaped(trials: Trials, warm: bool) -> None:
    source = DAEMON + "    daemon(signal.pause)\n    plugpull.answer('x')\n"
    assert kernel.process_line(daemon_pid(trials.run_once(source, warm=warm))) is None


def test_a_daemons_own_children_are_found(trials: Trials) -> None:
    source = DAEMON + (
        "    daemon(lambda: (os.fork(), os.execve('/bin/sleep', ['sleep', '600'], {})))\n"
        "    plugpull.answer('x')\n"
    )
    history = trials.run_once(source)
    assert len(history.of("left-behind")) == 2
    for left in history.of("left-behind"):
        assert dead(left["pid"])


def test_a_child_in_the_group_that_outlives_its_parent_is_ended(trials: Trials) -> None:
    source = "import os, signal\nif os.fork() == 0:\n    signal.pause()\n"
    history = trials.run_once(source)
    (left,) = history.of("left-behind")
    assert (left["in_group"], left["ended"]) == (True, "harness")
    assert dead(left["pid"])


def test_what_ends_by_itself_in_time_is_recorded_as_such(trials: Trials) -> None:
    source = "import os, time\nif os.fork() == 0:\n    time.sleep(0.3)\n    os._exit(0)\n"
    (left,) = trials.run_once(source).of("left-behind")
    assert left["ended"] == "itself"


def test_an_agent_that_leaves_nothing_has_nothing_recorded(trials: Trials) -> None:
    source = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    assert not trials.run_once(source).of("left-behind")


@BOTH
def test_a_late_charge_is_in_the_history(trials: Trials, warm: bool) -> None:
    source = """
        import os, time, plugpull
        plugpull.answer("done")
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.4)
            plugpull.effect("charge_card", order="o-1", amount=42)
            os._exit(0)
    """
    history = trials.run_once(source, warm=warm)
    kinds = [event.kind for event in history]
    assert kinds.index("recorded") > kinds.index("answer")
    assert kinds[-1] == "closed"


def test_a_late_charge_of_a_killed_agents_daemon_is_in_the_history_or_never_made(trials: Trials) -> None:
    source = DAEMON + (
        "    daemon(lambda: [plugpull.effect('send_receipt', order=str(n)) for n in range(10**6)])\n"
        "    plugpull.effect('charge_card', order='o-1', amount=42)\n"
    )
    history = trials.run_once(source, kill(f"{CHARGE}.after", "once"))
    assert history.events[-1].kind == "closed"
    arrived, recorded = (
        [e["arguments"]["order"] for e in history.of(kind) if e["name"] == "send_receipt"]
        for kind in ("arrived", "recorded")
    )
    assert arrived == recorded


def test_two_trials_at_once_do_not_end_each_others_daemons(trials: Trials) -> None:
    long = (
        DAEMON
        + """
    import time
    def serve():
        time.sleep(1.5)
        plugpull.effect("charge_card", order="o-1", amount=42)
        os._exit(0)
    daemon(serve)
    time.sleep(2)
    plugpull.answer("x")
"""
    )
    waiting = trials.submit([LegPlan("start", trials.target(long, name="long.py"))])
    short = trials.target(DAEMON + "    daemon(signal.pause)\n    plugpull.answer('x')\n", name="short.py")
    for _ in range(3):
        history = trials.run([LegPlan("start", short)])
        assert len(history.of("left-behind")) == 1
    assert len(waiting.result(timeout=120).of("recorded")) == 1


def test_an_older_child_of_the_harness_is_left_alone(trials: Trials) -> None:
    mine = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert mine.stdout is not None
    assert mine.stdout.readline() == b"ready\n"
    trials.run_once("import plugpull\nplugpull.answer('x')\n")
    assert mine.poll() is None
    mine.send_signal(signal.SIGKILL)
    mine.wait()


@BOTH
def test_the_leader_ends_as_it_ends_whatever_it_leaves(trials: Trials, warm: bool) -> None:
    source = "import os, signal, sys\nif os.fork() == 0:\n    signal.pause()\nsys.exit(7)\n"
    assert exits(trials.run_once(source, warm=warm)) == [("exited", 7)]
