"""Faults that do not kill: stop and continue, terminate, a lost answer, a barrier. Each has its own check."""

import signal
from dataclasses import replace

from harness import kernel
from harness.plan import LegPlan
from harness.points import parse_point
from tests.trials import CHARGE, CHARGES, Trials, checks, errors, exits, fault, said

STEPS = """
    import sys, plugpull
    reply = plugpull.effect("charge_card", order="o-1", amount=42)
    plugpull.hello(reply=reply)
    plugpull.answer(sys.argv[1])
"""


# --- a stopped machine that wakes up ---


def test_a_stopped_agent_sleeps_while_another_works_and_then_goes_on(trials: Trials) -> None:
    command = trials.target(STEPS)
    stages = [
        LegPlan("start", command, faults=(fault(f"{CHARGE}.before", "stop"),)),
        LegPlan("resume", command),
        LegPlan("continue", command, wakes=0),
    ]
    history = trials.run(stages)
    assert not errors(history)
    assert [(e.leg, e["text"]) for e in history.of("answer")] == [(1, "resume"), (0, "start")]
    assert [e.leg for e in history.of("recorded")] == [1, 0]
    assert [(e.leg, e["action"]) for e in history.of("struck")] == [(0, "stop"), (0, "continue")]
    found = checks(history)
    assert found["stopped"]["states"] == ["T"]
    assert found["continued"]["ok"]
    assert [(e.leg, e["status"]) for e in history.of("leg-ended")] == [(1, 0), (0, 0)]


def test_a_call_that_was_recorded_before_the_stop_is_answered_after_it(trials: Trials) -> None:
    command = trials.target(STEPS)
    stages = [
        LegPlan("start", command, faults=(fault(f"{CHARGE}.after", "stop"),)),
        LegPlan("resume", command),
        LegPlan("continue", command, wakes=0),
    ]
    history = trials.run(stages)
    assert not errors(history)
    assert [e.leg for e in history.of("recorded")] == [0, 1]
    assert [e.leg for e in history.of("answered")] == [1, 0]
    assert said(history, 0)["reply"] == said(history, 1)["reply"]


def test_a_stopped_agent_that_is_never_woken_is_ended(trials: Trials) -> None:
    history = trials.run_twice(STEPS, fault(f"{CHARGE}.before", "stop"))
    assert not errors(history)
    for started in history.of("leg-started"):
        assert kernel.process_line(started["pid"]) is None
    assert history.events[-1].kind == "closed"


def test_a_woken_agent_that_hangs_meets_its_limit(trials: Trials) -> None:
    source = STEPS + "    import signal\n    if sys.argv[1] == 'start':\n        signal.pause()\n"
    command = trials.target(source)
    stages = [
        LegPlan("start", command, faults=(fault(f"{CHARGE}.before", "stop"),)),
        LegPlan("resume", command),
        LegPlan("continue", command, wakes=0),
    ]
    history = trials.run(stages, leg_limit_s=3)
    assert [(e.leg, e["which"]) for e in history.of("limit")] == [(0, "leg")]
    assert history.events[-1].kind == "closed"


# --- a deploy that says please ---


def test_an_agent_that_dies_of_sigterm_ends_by_it(trials: Trials) -> None:
    history = trials.run_twice(STEPS, fault(f"{CHARGE}.after", "terminate"))
    assert not errors(history)
    assert exits(history) == [("killed", signal.SIGTERM), ("exited", 0)]
    assert [e["signal"] for e in history.of("struck")] == [signal.SIGTERM]


GRACEFUL = """
    import signal, sys, plugpull
    signal.signal(signal.SIGTERM, lambda *_: plugpull.hello(asked="to stop"))
    plugpull.effect("charge_card", order="o-1", amount=42)
    plugpull.answer("done in time")
"""


def test_an_agent_that_finishes_its_work_in_the_grace_is_not_killed(trials: Trials) -> None:
    strike = fault(f"{CHARGE}.after", "terminate", answer_after_s=0.2, kill_after_s=30.0)
    history = trials.run_once(GRACEFUL, strike)
    assert not errors(history)
    assert exits(history) == [("exited", 0)]
    assert said(history) == {"asked": "to stop"}
    assert [e["text"] for e in history.of("answer")] == ["done in time"]
    assert checks(history)["terminated"]["how"] == "exited"


def test_an_agent_that_is_never_answered_is_killed_after_the_grace(trials: Trials) -> None:
    history = trials.run_once(GRACEFUL, fault(f"{CHARGE}.after", "terminate", kill_after_s=1.0))
    assert not errors(history)
    assert [e["action"] for e in history.of("struck")] == ["terminate", "kill"]
    assert exits(history) == [("killed", signal.SIGKILL)]
    ended = checks(history)["terminated"]
    assert ended["seconds"] >= 1


# --- an answer that gets lost ---

RETRIES = """
    import sys, plugpull
    for attempt in range(3):
        try:
            reply = plugpull.effect("charge_card", order="o-1", amount=42)
            break
        except (OSError, plugpull.http.client.HTTPException) as error:
            plugpull.hello(**{"attempt%d" % attempt: type(error).__name__})
    plugpull.answer("done")
"""


def test_a_lost_answer_closes_the_connection_and_leaves_the_process_alone(trials: Trials) -> None:
    history = trials.run_once(RETRIES, fault(f"{CHARGE}.after", "lose-answer", "once"))
    assert not errors(history)
    assert exits(history) == [("exited", 0)]
    assert list(said(history)) == ["attempt0"]
    assert len(history.of("recorded")) == 2
    assert len(history.of("answered")) == 1


def test_an_answer_lost_before_the_effect_records_it_once(trials: Trials) -> None:
    history = trials.run_once(RETRIES, fault(f"{CHARGE}.before", "lose-answer", "once"))
    assert not errors(history)
    assert len(history.of("recorded")) == 1


def test_a_resume_runs_only_if_the_start_failed(trials: Trials) -> None:
    strike = fault(f"{CHARGE}.after", "lose-answer", "once")
    for source, legs in ((RETRIES, 1), (STEPS, 2)):
        command = trials.target(source)
        stages = [LegPlan("start", command, faults=(strike,)), LegPlan("resume", command, only="if-failed")]
        history = trials.run(stages)
        assert not errors(history)
        assert len(history.of("leg-started")) == legs


# --- two at once ---


def test_two_legs_meet_before_either_is_answered(trials: Trials) -> None:
    command = trials.target(CHARGES)
    meets = (fault(f"{CHARGE}.before", "meet", "once"),)
    legs = (LegPlan("resume", command, faults=meets), LegPlan("resume", command, faults=meets))
    history = trials.run([legs])
    assert not errors(history)
    assert [e["reason"] for e in history.of("barrier")] == ["met", "met"]
    kinds = [(e.kind, e.leg) for e in history.of("held", "answered")]
    assert {kind for kind, _ in kinds[:2]} == {"held"}
    assert {leg for _, leg in kinds[:2]} == {0, 1}
    assert exits(history) == [("exited", 0)] * 2


def test_a_leg_does_not_wait_for_one_that_has_ended(trials: Trials) -> None:
    charges, leaves = trials.target(CHARGES), trials.target("raise SystemExit(4)\n", name="leaves.py")
    meets = (fault(f"{CHARGE}.before", "meet", "once"),)
    legs = (LegPlan("resume", charges, faults=meets), LegPlan("resume", leaves, faults=meets))
    history = trials.run([legs])
    assert [e["reason"] for e in history.of("barrier")] == ["other-ended"]
    assert sorted(e["status"] for e in history.of("leg-ended")) == [0, 4]
    assert not errors(history)


def test_a_leg_does_not_wait_for_ever(trials: Trials) -> None:
    charges = trials.target(CHARGES)
    waits = trials.target("import time\ntime.sleep(8)\n", name="waits.py")
    meets = (fault(f"{CHARGE}.before", "meet", "once"),)
    legs = (LegPlan("resume", charges, faults=meets), LegPlan("resume", waits, faults=meets))
    history = trials.run([legs])
    assert [e["reason"] for e in history.of("barrier")] == ["timeout"]
    assert not errors(history)


def test_two_legs_of_a_stage_can_be_killed_one_by_one(trials: Trials) -> None:
    command = trials.target(CHARGES)
    strikes = (fault(f"{CHARGE}.after", "kill", "once"),)
    legs = (LegPlan("resume", command, faults=strikes), LegPlan("resume", command))
    history = trials.run([legs])
    assert not errors(history)
    assert sorted(exits(history)) == [("exited", 0), ("killed", 9)]


def test_a_strike_at_several_points_waits_until_all_are_held(trials: Trials) -> None:
    source = """
        import threading, plugpull
        for order in ("o-1", "o-2", "o-3"):
            threading.Thread(target=plugpull.effect, args=("charge_card",), kwargs={"order": order}).start()
    """

    texts = ("effect:charge_card(order=o-2)#1.before", "effect:charge_card(order=o-3)#1.after")
    strike = replace(fault(texts[0], "kill"), points=tuple(parse_point(text) for text in texts))
    history = trials.run_once(source, strike)
    assert not errors(history)
    assert len(history.of("held")) == 2
    assert sorted(e["arguments"]["order"] for e in history.of("recorded")) == ["o-1", "o-3"]
