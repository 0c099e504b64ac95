"""The world as an agent meets it: what is recorded, what is answered, what the history says of it."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from arena.boundaries import boundaries
from harness.history import History
from harness.launch import Launched, Launcher
from harness.plan import LegPlan
from harness.world import World, _calculate
from tests.trials import CHARGE, CHARGES, WORKLOAD, Trials, errors, exits, fault, kill, said


def test_an_effect_is_recorded_even_if_the_caller_dies_right_after_sending(trials: Trials) -> None:
    dies = """
        import json, os, signal, socket
        for n in range(60):
            if os.fork() == 0:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(os.environ["PLUGPULL_PROVIDER"])
                body = json.dumps({"order": str(n)}).encode()
                connection.sendall(
                    b"POST /effects/charge_card HTTP/1.1\\r\\nHost: p\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body)
                    + body
                )
                os.kill(os.getpid(), signal.SIGKILL)
            os.wait()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    for _ in range(3):
        history = trials.run_once(dies)
        assert sorted(int(e["arguments"]["order"]) for e in history.of("recorded")) == list(range(60))
        assert history.events[-1].kind == "closed"


def test_an_agent_that_dies_with_open_requests_loses_none(trials: Trials) -> None:
    dies = """
        import json, os, signal, socket
        connections = [socket.socket(socket.AF_UNIX) for _ in range(80)]
        for connection in connections:
            connection.connect(os.environ["PLUGPULL_PROVIDER"])
        for n, connection in enumerate(connections):
            body = json.dumps({"order": str(n)}).encode()
            connection.sendall(
                b"POST /effects/charge_card HTTP/1.1\\r\\nHost: p\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
            )
        os.kill(os.getpid(), signal.SIGKILL)
    """
    history = trials.run_once(dies)
    assert len(history.of("recorded")) == 80
    assert history.events[-1].kind == "closed"


def test_a_leg_that_calls_before_its_launch_is_known_is_recorded_after_its_start(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a loaded machine a warm leg's first call arrives before the fork server's answer is read."""
    launch = Launcher.launch

    async def late(*arguments: Any, **options: Any) -> Launched:
        launched = await launch(*arguments, **options)
        await asyncio.sleep(0.5)
        return launched

    monkeypatch.setattr(Launcher, "launch", late)
    kinds = [event.kind for event in trials.run_once(CHARGES, warm=True)]
    assert kinds[0] == "leg-started"
    assert "recorded" in kinds


def test_what_waits_in_the_accept_queue_at_the_end_is_still_recorded(tmp_path: Path) -> None:
    """The loop has not even accepted these connections when it is told to drain: their callers are long gone."""

    async def recorded() -> int:
        world = World(tmp_path)
        await world.start()
        trial = world.open_trial("t", WORKLOAD, {})
        leg = await trial.open_leg(())
        leg.begun.set()
        for n in range(40):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(leg.path))
                body = json.dumps({"order": str(n)}).encode()
                caller.sendall(
                    b"POST /effects/charge_card HTTP/1.1\r\nHost: p\r\nContent-Length: %d\r\n\r\n" % len(body)
                    + body
                )
        assert await leg.drain()
        await world.stop()
        return len(trial.recorder.history().of("recorded"))

    assert asyncio.run(recorded()) == 40


def test_a_request_that_never_fully_arrived_is_no_effect(trials: Trials) -> None:
    half = """
        import os, signal, socket
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(os.environ["PLUGPULL_PROVIDER"])
        connection.sendall(b"POST /effects/charge_card HTTP/1.1\\r\\nHost: p\\r\\nContent-Length: 40\\r\\n\\r\\n{")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    history = trials.run_once(half)
    assert not history.of("recorded")
    assert history.events[-1].kind == "closed"


def test_a_repeated_effect_is_answered_byte_for_byte_alike(trials: Trials) -> None:
    source = """
        import plugpull
        a, b, c = (plugpull.effect("charge_card", key=k, order="o-1", amount=42) for k in ("k", "k", None))
        other = plugpull.effect("charge_card", order="o-2", amount=42)
        plugpull.hello(same=a == b == c, other=a != other)
    """
    facts = said(trials.run_once(source))
    assert facts == {"same": "True", "other": "True"}


def test_a_repeated_effect_is_answered_alike_in_the_next_process(trials: Trials) -> None:
    source = """
        import plugpull
        plugpull.hello(reply=plugpull.effect("charge_card", order="o-1", amount=42))
    """
    history = trials.run_twice(source)
    assert said(history, 0)["reply"] == said(history, 1)["reply"]


def test_each_trial_has_tokens_of_its_own(trials: Trials) -> None:
    source = """
        import plugpull
        plugpull.hello(reply=plugpull.effect("charge_card", order="o-1", amount=42))
    """
    assert said(trials.run_once(source)) != said(trials.run_once(source))


def test_an_effect_carries_the_callers_pid_and_its_key(trials: Trials) -> None:
    history = trials.run_once("import plugpull\nplugpull.effect('charge_card', key='k-1', order='o-1')\n")
    arrived = history.of("arrived")[0]
    assert arrived["pid"] == history.of("leg-started")[0]["pid"]
    assert (arrived["key"], arrived["key_kind"]) == ("k-1", "other")


def test_an_effect_without_a_key_has_no_fact_about_one(trials: Trials) -> None:
    history = trials.run_once("import plugpull\nplugpull.effect('charge_card', order='o-1')\n")
    for event in history.of("arrived", "recorded"):
        assert "key" not in event.facts
        assert "key_kind" not in event.facts


ASKS = """
    import json, os, sys, urllib.request, urllib.error, plugpull
    def ask(messages, **more):
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps({"model": "m", "messages": messages, **more}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            return reply.read().decode()
    def message(messages):
        return json.loads(ask(messages))["choices"][0]["message"]
    user = [{"role": "user", "content": os.environ["PLUGPULL_PROMPT"]}]
"""


def test_an_id_that_the_model_minted_in_this_trial_is_a_call_id(trials: Trials) -> None:
    source = (
        ASKS
        + """
    call = message(user)["tool_calls"][0]
    plugpull.effect("charge_card", key=call["id"], order="o-1", amount=42)
    """
    )
    assert [e["key_kind"] for e in trials.run_once(source).of("recorded")] == ["call-id"]


def test_the_same_question_in_a_trial_gets_a_fresh_id_each_time(trials: Trials) -> None:
    source = (
        ASKS
        + """
    ids = {message(user)["tool_calls"][0]["id"] for _ in range(3)}
    plugpull.hello(ids=str(len(ids)))
    """
    )
    assert said(trials.run_once(source)) == {"ids": "3"}


def test_an_id_of_another_trial_is_no_call_id(trials: Trials) -> None:
    source = (
        ASKS
        + """
    call = message(user)["tool_calls"][0]
    plugpull.hello(id=call["id"])
    """
    )
    foreign = said(trials.run_once(source))["id"]
    history = trials.run_once(
        f"import plugpull\nplugpull.effect('charge_card', key={foreign!r}, order='o-1')\n"
    )
    assert [e["key_kind"] for e in history.of("recorded")] == ["other"]


def test_a_run_of_model_and_tool_ends_with_the_models_answer(trials: Trials) -> None:
    source = (
        ASKS
        + """
    first = message(user)
    call = first["tool_calls"][0]
    result = plugpull.effect("charge_card", key=call["id"], **json.loads(call["function"]["arguments"]))
    last = message([*user, first, {"role": "tool", "tool_call_id": call["id"], "content": result}])
    plugpull.answer(last["content"])
    """
    )
    history = trials.run_once(source)
    assert [e["text"] for e in history.of("answer")] == ["o-1 is paid."]
    asked = history.of("model-asked")
    assert [e["turn"] for e in asked] == [1, 2]
    assert asked[1]["received"][0][1:] == ["charge_card", {"order": "o-1", "amount": 42}, True]


def test_a_broken_transcript_is_refused_with_400_and_noted(trials: Trials) -> None:
    source = (
        ASKS
        + """
    first = message(user)
    try:
        ask([*user, first, {"role": "user", "content": "continue"}])
    except urllib.error.HTTPError as error:
        plugpull.hello(code=error.code, text=error.read().decode())
    """
    )
    history = trials.run_once(source)
    assert said(history)["code"] == "400"
    assert "did not have response messages" in said(history)["text"]
    assert [e["rule"] for e in history.of("model-refused")] == ["call-without-result"]


def test_a_request_that_is_no_json_is_refused_and_noted(trials: Trials) -> None:
    source = """
    import os, urllib.request, urllib.error
    try:
        urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", b"hello")
    except urllib.error.HTTPError as error:
        raise SystemExit(error.code - 400)
    """
    history = trials.run_once(source)
    assert exits(history) == [("exited", 0)]
    assert [e["rule"] for e in history.of("model-refused")] == ["not-understood"]
    assert not errors(history)


def test_the_model_streams_where_it_is_asked_to(trials: Trials) -> None:
    source = (
        ASKS
        + """
    text = ask(user, stream=True)
    plugpull.hello(done=text.endswith("data: [DONE]\\n\\n"), named="charge_card" in text)
    """
    )
    history = trials.run_once(source)
    assert said(history) == {"done": "True", "named": "True"}
    assert history.of("model-asked")[0]["streamed"] is True


def test_a_clients_retry_is_the_same_turn(trials: Trials) -> None:
    source = (
        ASKS
        + """
    def again(count):
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps({"messages": user}).encode(),
            {"Content-Type": "application/json", "x-stainless-retry-count": str(count)},
        )
        urllib.request.urlopen(request).read()
    again(0)
    again(1)
    again(0)
    """
    )
    asked = trials.run_once(source).of("model-asked")
    assert [(e["turn"], e["retry"]) for e in asked] == [(1, False), (1, True), (2, False)]


def test_a_kill_at_a_turn_of_the_model_holds_that_turn(trials: Trials) -> None:
    source = (
        ASKS
        + """
    ask(user)
    ask([*user, {"role": "user", "content": "more"}])
    """
    )
    history = trials.run_once(source, kill("model#2"))
    assert not errors(history)
    assert len(history.of("model-asked")) == 2
    assert [e["turn"] for e in history.of("model-answered")] == [1]


def test_a_read_only_tool_finds_what_the_trial_knows(trials: Trials) -> None:
    source = """
        import plugpull
        plugpull.hello(
            found=plugpull.call("lookup", fact="the price"), sum=plugpull.call("calculator", expression="3 * 120")
        )
    """
    facts = said(trials.run_once(source, facts={"the price": "120"}))
    assert " = 120 [ok-" in facts["found"]
    assert " = 360 [ok-" in facts["sum"]


def test_an_unknown_fact_is_an_answer_with_400_and_no_fault_of_ours(trials: Trials) -> None:
    source = """
        import plugpull
        try:
            plugpull.call("lookup", fact="what is not known")
        except plugpull.ProviderError as error:
            plugpull.hello(said=str(error))
    """
    history = trials.run_once(source)
    assert "400 no such fact" in said(history)["said"]
    assert not errors(history)


@pytest.mark.parametrize(
    "expression", ["__import__('os')", "2 ** 9", "a", "1 if 2 else 3", "", "1 / 0", "f(1)"]
)
def test_the_calculator_takes_nothing_but_arithmetic(expression: str) -> None:
    with pytest.raises(ValueError):
        _calculate(expression)


@pytest.mark.parametrize(
    ("expression", "value"), [("96 / 4", "24"), ("1 / 4", "0.25"), ("-(3 - 5) * 2", "4")]
)
def test_the_calculator_calculates(expression: str, value: str) -> None:
    assert _calculate(expression) == value


def test_each_leg_has_an_address_of_its_own(trials: Trials) -> None:
    source = "import os, plugpull\nplugpull.hello(at=os.environ['PLUGPULL_PROVIDER'], url=os.environ['OPENAI_BASE_URL'])\n"
    history = trials.run_twice(source)
    first, second = said(history, 0), said(history, 1)
    assert first["at"] != second["at"]
    assert first["url"] != second["url"]


def test_events_stand_in_the_order_of_their_times(trials: Trials) -> None:
    source = "import plugpull\nplugpull.effect('charge_card', order='o-1', amount=42)\nplugpull.answer('x')\n"
    history = trials.run_twice(source, kill(f"{CHARGE}.after"))
    times = [event.at for event in history]
    assert times == sorted(times)
    assert history.events[-1].kind == "closed"


# --- the session store ---


def writes(history: History) -> list[tuple[str, list[str]]]:
    """Return the writes that the store has kept."""
    return [(e["operation"], e["items"]) for e in history.of("stored")]


def held(history: History, session: str = "s") -> dict[str, int]:
    """Return what a session holds when the trial is over: each item's JSON, and how often."""
    (found,) = [e["items"] for e in history.of("store") if e["session"] == session]
    return dict(found)


def test_the_store_returns_the_items_of_a_session_in_their_order(trials: Trials) -> None:
    source = """
        import plugpull
        plugpull.store("s", [{"n": 1}, "two"])
        plugpull.store("s", [[3], {"n": 1}])
        assert plugpull.stored("s") == [{"n": 1}, "two", [3], {"n": 1}], plugpull.stored("s")
        assert plugpull.stored("another") == []
    """
    history = trials.run_once(source)
    assert exits(history) == [("exited", 0)]
    assert writes(history) == [("append", ['{"n":1}', '"two"']), ("append", ["[3]", '{"n":1}'])]
    assert held(history) == {'{"n":1}': 2, '"two"': 1, "[3]": 1}


def test_the_store_keeps_a_session_for_the_next_process(trials: Trials) -> None:
    source = """
        import plugpull, sys
        if sys.argv[1] == "start":
            plugpull.store("s", ["a"])
        else:
            plugpull.hello(stored=plugpull.stored("s"))
    """
    history = trials.run_twice(source)
    assert said(history, 1) == {"stored": "['a']"}


def test_each_trial_has_a_store_of_its_own(trials: Trials) -> None:
    source = """
        import plugpull
        assert plugpull.stored("s") == []
        plugpull.store("s", ["a"])
    """
    for _ in range(2):
        assert exits(trials.run_once(source)) == [("exited", 0)]


def test_the_last_item_is_popped_and_handed_back(trials: Trials) -> None:
    source = """
        import plugpull
        plugpull.store("s", ["a", "b"])
        assert plugpull.unstore("s") == "b"
        assert plugpull.stored("s") == ["a"]
        assert plugpull.unstore("s") == "a"
        assert plugpull.unstore("s") is None
    """
    history = trials.run_once(source)
    assert exits(history) == [("exited", 0)]
    assert writes(history) == [("append", ['"a"', '"b"']), *[("pop", [])] * 3]
    assert held(history) == {}


def test_a_cleared_session_is_empty_and_no_other_one_is(trials: Trials) -> None:
    source = """
        import plugpull
        plugpull.store("s", ["a", "b"])
        plugpull.store("other", ["a"])
        plugpull.clear("s")
        assert plugpull.stored("s") == []
        assert plugpull.stored("other") == ["a"]
    """
    history = trials.run_once(source)
    assert exits(history) == [("exited", 0)]
    assert (held(history), held(history, "other")) == ({}, {'"a"': 1})


def test_reading_a_session_is_no_write(trials: Trials) -> None:
    history = trials.run_once('import plugpull\nplugpull.stored("s")\nplugpull.store("s", [1])\n')
    assert [(e["what"], e["n"]) for e in history.of("arrived")] == [("write", 1)]


def test_a_write_says_who_wrote_what_and_where(trials: Trials) -> None:
    history = trials.run_once('import plugpull\nplugpull.store("s", ["a"])\n')
    (arrived,) = history.of("arrived")
    assert arrived["pid"] == history.of("leg-started")[0]["pid"]
    assert (arrived["name"], arrived["arguments"]) == ("s", {"operation": "append", "items": ['"a"']})
    assert [e["what"] for e in history.of("answered")] == ["write"]


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/store/s/shuffle", {}, "404 the store has no 'shuffle'"),
        ("/store/s", {}, "404 the store has no ''"),
        ("/store/s/append", {"items": "a"}, "400 append takes a list"),
        ("/store/s/append", {}, "400 append takes a list"),
    ],
)
def test_what_the_store_does_not_know_is_refused_and_no_write(
    trials: Trials, path: str, body: dict[str, object], text: str
) -> None:
    source = f"""
        import plugpull
        try:
            plugpull._post({path!r}, {body!r})
        except plugpull.ProviderError as error:
            plugpull.hello(said=str(error))
    """
    history = trials.run_once(source)
    assert text in said(history)["said"]
    assert not history.of("arrived", "stored")
    assert not errors(history)


#: Writes three times and says after each how it went; it does not give up.
WRITES = """
    import http.client, plugpull
    for item in ("a", "b", "c"):
        try:
            plugpull.store("s", [item])
            plugpull.hello(**{item: "kept"})
        except (OSError, http.client.HTTPException):
            plugpull.hello(**{item: "failed"})
"""


@pytest.mark.parametrize(("side", "kept"), [("before", ["a", "c"]), ("after", ["a", "b", "c"])])
def test_a_write_is_lost_or_only_its_acknowledgment(trials: Trials, side: str, kept: list[str]) -> None:
    history = trials.run_once(WRITES, fault(f"write#2.{side}", "lose-answer", "once"))
    assert not errors(history)
    assert said(history) == {"a": "kept", "b": "failed", "c": "kept"}
    assert held(history) == {f'"{item}"': 1 for item in kept}
    assert [e["n"] for e in history.of("arrived")] == [1, 2, 3]
    assert [e["n"] for e in history.of("answered")] == [1, 3]


@pytest.mark.parametrize(("operation", "left"), [("unstore", ["a", "b"]), ("clear", ["a", "b"])])
def test_a_removal_is_a_write_that_can_be_lost(trials: Trials, operation: str, left: list[str]) -> None:
    source = f"""
        import http.client, plugpull
        plugpull.store("s", ["a", "b"])
        try:
            plugpull.{operation}("s")
        except (OSError, http.client.HTTPException):
            plugpull.hello(stored=plugpull.stored("s"))
    """
    history = trials.run_once(source, fault("write#2.before", "lose-answer", "once"))
    assert not errors(history)
    assert said(history) == {"stored": str(left)}
    assert [operation for operation, _ in writes(history)] == ["append"]


def test_writes_are_counted_anew_in_each_process(trials: Trials) -> None:
    command = trials.target(WRITES)
    lost = (fault("write#1.before", "lose-answer", "once"),)
    history = trials.run([LegPlan("start", command), LegPlan("resume", command, faults=lost)])
    assert not errors(history)
    assert said(history, 1)["a"] == "failed"
    assert held(history) == {'"a"': 1, '"b"': 2, '"c"': 2}


@pytest.mark.parametrize(("side", "kept"), [("before", {}), ("after", {'"a"': 1})])
def test_a_process_is_killed_at_a_write(trials: Trials, side: str, kept: dict[str, int]) -> None:
    history = trials.run_once(WRITES, kill(f"write#1.{side}"))
    assert not errors(history)
    assert exits(history) == [("killed", 9)]
    assert held(history) == kept


def test_the_writes_of_an_unharmed_run_are_its_boundaries(trials: Trials) -> None:
    history = trials.run_once(WRITES)
    assert boundaries(history) == tuple(
        f"write#{n}.{side}" for n in (1, 2, 3) for side in ("before", "after")
    )


def test_the_writes_of_two_sessions_have_one_numbering(trials: Trials) -> None:
    # a point `write#n` counts the writes of a leg, so the boundaries of a run must do so too
    source = """
        import plugpull
        for session in ("s", "other", "s"):
            plugpull.store(session, [session])
    """
    history = trials.run_once(source)
    assert boundaries(history) == tuple(
        f"write#{n}.{side}" for n in (1, 2, 3) for side in ("before", "after")
    )
    for n, session in enumerate(("s", "other", "s"), 1):
        killed = trials.run_once(source, kill(f"write#{n}.before"))
        assert not errors(killed)
        assert killed.of("arrived")[-1]["name"] == session
