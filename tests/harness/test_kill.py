"""A kill: what is held is not answered, what is recorded stays recorded, and the kernel tells who died."""

import signal
from pathlib import Path

import pytest

from harness import kernel
from harness.faults import Timing
from harness.history import CHECKS
from harness.plan import LegPlan
from tests.trials import CHARGE, CHARGES, Trials, checks, errors, exits, kill

BOTH = pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])


@BOTH
def test_a_held_call_is_never_answered_before_the_kill(trials: Trials, warm: bool) -> None:
    history = trials.run_twice(CHARGES, kill(f"{CHARGE}.after"), warm=warm)
    assert not errors(history)
    assert not history.of("answered", leg=0)
    assert len(history.of("answered", leg=1)) == 1


@BOTH
def test_a_call_held_before_is_not_recorded(trials: Trials, warm: bool) -> None:
    history = trials.run_twice(CHARGES, kill(f"{CHARGE}.before"), warm=warm)
    assert not errors(history)
    assert not history.of("recorded", leg=0)
    assert len(history.of("recorded", leg=1)) == 1


@BOTH
def test_a_call_held_after_is_recorded(trials: Trials, warm: bool) -> None:
    history = trials.run_twice(CHARGES, kill(f"{CHARGE}.after"), warm=warm)
    assert len(history.of("recorded", leg=0)) == 1
    assert len(history.of("recorded", leg=1)) == 1


@BOTH
def test_a_kill_leaves_the_kernels_facts_in_the_history(trials: Trials, warm: bool) -> None:
    history = trials.run_twice(CHARGES, kill(f"{CHARGE}.after"), warm=warm)
    pid = history.of("leg-started", leg=0)[0]["pid"]
    found = checks(history)
    assert history.of("arrived", leg=0)[0]["pid"] == pid
    assert found["holders"]["holders"] == [[pid, pid]]
    status = found["killed"]
    assert (status["how"], status["status"]) == ("killed", signal.SIGKILL)
    assert 0 <= found["closed"]["seconds"] <= 1
    struck = history.of("struck")[0]
    assert (struck["signal"], struck["group"]) == (signal.SIGKILL, pid)
    assert exits(history) == [("killed", signal.SIGKILL), ("exited", 0)]


@BOTH
def test_the_resume_is_another_process(trials: Trials, warm: bool) -> None:
    history = trials.run_twice(CHARGES, kill(f"{CHARGE}.after"), warm=warm)
    first, second = history.of("leg-started")
    assert first["pid"] != second["pid"]
    assert [first["word"], second["word"]] == ["start", "resume"]
    assert [first["start"], second["start"]] == ["warm" if warm else "cold"] * 2


def test_a_kill_at_rest_says_that_every_thread_slept(trials: Trials) -> None:
    struck = trials.run_twice(CHARGES, kill(f"{CHARGE}.after", "rest")).of("struck")[0]
    assert struck["rested"] is True
    assert struck["rest_s"] >= 0.03


def test_a_kill_at_once_does_not_wait_for_rest(trials: Trials) -> None:
    struck = trials.run_twice(CHARGES, kill(f"{CHARGE}.after", "once")).of("struck")[0]
    assert "rested" not in struck.facts


def test_a_target_that_never_rests_is_struck_and_the_history_says_so(trials: Trials) -> None:
    busy = """
        import threading, plugpull
        def spin():
            while True:
                sum(range(1000))
        threading.Thread(target=spin, daemon=True).start()
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    struck = trials.run_once(busy, kill(f"{CHARGE}.after", "rest")).of("struck")[0]
    assert struck["rested"] is False


def test_a_thread_that_wakes_now_and_then_is_not_at_rest_between(trials: Trials) -> None:
    # it sleeps whenever one looks, yet runs again within each 30 ms: only the context switches tell
    ticking = """
        import threading, time, plugpull
        def tick():
            while True:
                time.sleep(0.005)
        threading.Thread(target=tick, daemon=True).start()
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    struck = trials.run_once(ticking, kill(f"{CHARGE}.after", "rest")).of("struck")[0]
    assert struck["rested"] is False


def test_a_background_writer_has_finished_when_a_kill_at_rest_strikes(trials: Trials, tmp_path: Path) -> None:
    file = tmp_path / "written"
    writer = f"""
        import threading, time, plugpull
        def write():
            with open({str(file)!r}, "w") as out:
                for n in range(20):
                    out.write("x")
                    out.flush()
                    sum(range(10**5))
        threading.Thread(target=write).start()
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    history = trials.run_once(writer, kill(f"{CHARGE}.after", "rest"))
    assert history.of("struck")[0]["rested"] is True
    assert file.read_text() == "x" * 20


@pytest.mark.parametrize("timing", ["rest", "once"])
def test_an_agent_that_ignores_sigterm_dies_all_the_same(trials: Trials, timing: Timing) -> None:
    stubborn = """
        import signal, plugpull
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    history = trials.run_once(stubborn, kill(f"{CHARGE}.after", timing))
    assert not errors(history)
    assert exits(history) == [("killed", signal.SIGKILL)]


def test_an_agent_that_did_not_die_of_the_kill_is_an_error(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if something else had ended the agent at the same instant: its status says so, and the rest looks alike."""
    real, sent = kernel.send_group, list[int]()

    def too_late(group: int, signum: int) -> None:
        real(group, signal.SIGTERM if not sent else signum)
        sent.append(signum)

    monkeypatch.setattr(kernel, "send_group", too_late)
    history = trials.run_once(CHARGES, kill(f"{CHARGE}.after"))
    assert sent[0] == signal.SIGKILL
    assert (checks(history)["killed"]["how"], checks(history)["killed"]["status"]) == (
        "killed",
        signal.SIGTERM,
    )
    assert errors(history) == [f"check failed: {CHECKS['killed']}"]


def test_a_tool_in_a_child_of_the_group_is_cut_off_by_the_kill_itself(trials: Trials) -> None:
    """Whoever is ended only when the leg is cleared away would keep the held connection open past its second."""
    parent = """
        import os, signal, plugpull
        if os.fork() == 0:
            plugpull.effect("charge_card", order="o-1", amount=42)
        signal.pause()
    """
    history = trials.run_once(parent, kill(f"{CHARGE}.after"))
    assert not errors(history)
    (holder,) = checks(history)["holders"]["holders"]
    assert holder[0] != history.of("leg-started")[0]["pid"] == holder[1]
    assert checks(history)["closed"]["ok"] is True


def test_children_in_the_group_die_with_the_agent(trials: Trials) -> None:
    parent = """
        import os, signal, plugpull
        if os.fork() == 0:
            signal.pause()
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    history = trials.run_once(parent, kill(f"{CHARGE}.after"))
    assert not errors(history)
    assert history.of("closed")


# --- what must end in an error ---


def test_a_connection_inherited_outside_the_group_is_an_error(trials: Trials) -> None:
    heir = """
        import os, signal, socket, plugpull
        connect = socket.socket.connect
        def bequeath(connection, address):
            connect(connection, address)
            if os.fork() == 0:
                os.setsid()
                signal.alarm(20)
                signal.pause()
        socket.socket.connect = bequeath
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    history = trials.run_once(heir, kill(f"{CHARGE}.after"))
    assert errors(history) == ["check failed: everyone who holds the request is in the agent's process group"]
    held = checks(history)["holders"]
    assert len(held["holders"]) == 2


def test_a_tool_in_a_process_outside_the_group_is_an_error(trials: Trials) -> None:
    escapee = """
        import os, plugpull
        child = os.fork()
        if child == 0:
            os.setsid()
            plugpull.effect("charge_card", order="o-1", amount=42)
            os._exit(0)
        os.waitpid(child, 0)
    """
    history = trials.run_once(escapee, kill(f"{CHARGE}.after"))
    assert errors(history) == ["check failed: everyone who holds the request is in the agent's process group"]
    assert history.of("arrived")[0]["pid"] != history.of("leg-started")[0]["pid"]


def test_an_agent_that_executes_another_interpreter_is_an_error(trials: Trials, tmp_path: Path) -> None:
    other = tmp_path / "python-of-another-environment"
    other.write_bytes(Path("/proc/self/exe").read_bytes())
    other.chmod(0o755)
    impostor = f"""
        import os, sys, plugpull
        if "again" not in sys.argv:
            os.environ["PYTHONHOME"] = sys.base_prefix
            os.execv({str(other)!r}, [{str(other)!r}, __file__, "again"])
        plugpull.effect("charge_card", order="o-1", amount=42)
    """
    history = trials.run_once(impostor, kill(f"{CHARGE}.after"))
    assert errors(history) == ["check failed: the agent executes its environment's interpreter"]


def test_a_target_that_never_reaches_its_point_is_an_error(trials: Trials) -> None:
    history = trials.run_twice("import plugpull\nplugpull.answer('done')\n", kill(f"{CHARGE}.after"))
    assert errors(history) == [f"the leg ended before its point was reached: {CHARGE}.after@rest"]
    assert len(history.of("leg-started")) == 1


def test_a_target_that_crashes_before_its_point_is_an_error(trials: Trials) -> None:
    history = trials.run_twice("raise SystemExit(3)\n", kill(f"{CHARGE}.before"))
    assert errors(history) == [f"the leg ended before its point was reached: {CHARGE}.before@rest"]


def test_only_the_second_call_is_held_where_the_point_says_so(trials: Trials) -> None:
    two = """
        import plugpull
        plugpull.effect("charge_card", order="o-1", amount=1)
        plugpull.effect("charge_card", order="o-2", amount=2)
    """
    history = trials.run_once(two, kill("effect:charge_card#2.before"))
    assert not errors(history)
    assert [e["arguments"]["order"] for e in history.of("recorded")] == ["o-1"]


def test_a_point_with_arguments_holds_the_call_that_has_them(trials: Trials) -> None:
    two = """
        import plugpull
        plugpull.effect("charge_card", order="o-1", amount=1)
        plugpull.effect("charge_card", order="o-2", amount=2)
    """
    history = trials.run_once(two, kill("effect:charge_card(order=o-2)#1.before"))
    assert not errors(history)
    assert [e["arguments"]["order"] for e in history.of("recorded")] == ["o-1"]


def test_a_later_leg_that_does_not_reach_its_point_is_no_error(trials: Trials) -> None:
    source = """
        import sys, plugpull
        if sys.argv[1] == "start":
            plugpull.effect("charge_card", order="o-1", amount=42)
        plugpull.answer("done")
    """
    command = trials.target(source)
    point = kill(f"{CHARGE}.after")
    history = trials.run(
        [LegPlan("start", command, faults=(point,)), LegPlan("resume", command, faults=(point,))]
    )
    assert not errors(history)
    assert exits(history)[-1] == ("exited", 0)
