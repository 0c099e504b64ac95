"""The scripted model: progress from the transcript alone, and strict about its form."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import (
    Ask,
    Call,
    Message,
    OnFailure,
    Question,
    Refused,
    Turn,
    Workload,
    identity,
    next_turn,
    read_transcript,
)

CHARGE = Ask("charge_card", {"order": "o-1", "amount": 42})
RECEIPT = Ask("send_receipt", {"order": "o-1"})
LOOKUPS = (Ask("lookup", {"fact": "a"}), Ask("lookup", {"fact": "b"}), Ask("lookup", {"fact": "c"}))
USER = Message("user", "Charge o-1, then send the receipt.")


def token_of(call: str) -> str:
    return f"[ok-{abs(hash(call)):016x}]"


def workload(on_failure: OnFailure = "ask-once-more") -> Workload:
    first = Question(USER.text, ((CHARGE,), (RECEIPT,)), "o-1 is paid.")
    second = Question("And again, #second.", ((LOOKUPS[0],),), "{last} it is.", "#second")
    return Workload("w", (first, second), on_failure)


def batch() -> Workload:
    return Workload("batch", (Question("Look up.", (LOOKUPS, (CHARGE,)), "done"),))


def ask(messages: Sequence[Message], of: Workload | None = None) -> Turn:
    return next_turn(of or workload(), messages, token_of)


def assistant(turn: Turn) -> Message:
    return Message("assistant", turn.answer or "", turn.calls)


def result(call: Call, value: str = "done", *, good: bool = True) -> Message:
    assert call.arguments is not None
    token = token_of(identity(call.tool, call.arguments)) if good else "[ok-0123456789abcdef]"
    return Message("tool", f"{call.tool} o-1 = {value} {token}", call_id=call.id)


def after(*steps: bool) -> list[Message]:
    """Return a transcript in which the model's calls, one a turn, succeeded or failed in this order."""
    messages = [USER]
    for good in steps:
        turn = ask(messages)
        messages += [assistant(turn), *(result(call, good=good) for call in turn.calls)]
    return messages


def asked(turn: Turn) -> list[str]:
    return [call.tool for call in turn.calls]


def test_the_first_turn_asks_for_the_first_call() -> None:
    turn = ask([USER])
    assert [(c.tool, c.arguments) for c in turn.calls] == [(CHARGE.tool, CHARGE.arguments)]
    assert turn.answer is None


def test_the_run_ends_with_the_answer_when_all_is_done() -> None:
    assert ask(after(True, True)) == Turn(answer="o-1 is paid.")


def test_the_same_transcript_gets_fresh_ids_each_time() -> None:
    ids = {call.id for _ in range(200) for call in ask([USER]).calls}
    assert len(ids) == 200


def test_every_call_of_a_batch_has_its_own_id() -> None:
    calls = ask([Message("user", "Look up.")], batch()).calls
    assert len({call.id for call in calls}) == len(LOOKUPS)


def test_progress_is_found_over_the_whole_transcript() -> None:
    messages = after(True)
    messages += [Message("assistant", "Let me think."), Message("user", "Well?"), Message("assistant", "Hm.")]
    assert asked(ask(messages)) == ["send_receipt"]


@given(
    st.lists(
        st.tuples(st.sampled_from(("system", "user")), st.sampled_from(("", "continue", USER.text))),
        max_size=4,
    ),
    st.integers(min_value=0, max_value=3),
)
def test_system_and_further_user_messages_do_not_reset_progress(
    extra: list[tuple[str, str]], position: int
) -> None:
    messages = after(True)
    # anywhere but between a call and its result
    places = [0, 1, len(messages), len(messages)]
    at = places[position]
    messages[at:at] = [Message(role, text) for role, text in extra]
    assert asked(ask(messages)) == ["send_receipt"]


def test_a_second_question_is_known_by_its_token() -> None:
    messages = [*after(True, True), Message("assistant", "o-1 is paid."), Message("user", "Now #second.")]
    assert asked(ask(messages)) == ["lookup"]


def test_a_second_question_is_not_begun_without_its_token() -> None:
    messages = [*after(True, True), Message("assistant", "o-1 is paid."), Message("user", "Now second.")]
    assert ask(messages).answer == "o-1 is paid."


def test_the_answer_takes_the_value_of_the_last_result() -> None:
    messages = [*after(True, True), Message("user", "Now #second.")]
    turn = ask(messages)
    messages += [assistant(turn), result(turn.calls[0], "360")]
    assert ask(messages).answer == "360 it is."


def test_a_failed_result_is_asked_for_once_more_under_a_new_id() -> None:
    messages = after(False)
    turn = ask(messages)
    assert asked(turn) == ["charge_card"]
    assert turn.calls[0].id != messages[1].calls[0].id


def test_a_call_that_failed_twice_is_not_asked_for_again() -> None:
    assert asked(ask(after(False, False))) == ["send_receipt"]


def test_give_up_does_not_ask_again() -> None:
    assert asked(next_turn(workload("give-up"), after(False), token_of)) == ["send_receipt"]


def test_a_success_after_a_failure_counts() -> None:
    assert asked(ask(after(False, True))) == ["send_receipt"]


def test_a_token_of_another_call_is_no_success() -> None:
    messages = [USER]
    turn = ask(messages)
    foreign = Message("tool", f"charge_card = done {token_of(RECEIPT.identity)}", call_id=turn.calls[0].id)
    messages += [assistant(turn), foreign]
    assert asked(ask(messages)) == ["charge_card"]


def test_a_result_for_other_arguments_is_no_progress() -> None:
    call = Call("call_x", "charge_card", {"order": "o-2", "amount": 42})
    messages = [USER, Message("assistant", calls=(call,)), result(call)]
    assert asked(ask(messages)) == ["charge_card"]


def test_only_the_missing_calls_of_a_batch_are_asked_for() -> None:
    messages = [Message("user", "Look up.")]
    turn = ask(messages, batch())
    good = (True, False, True)
    messages += [assistant(turn), *(result(c, good=g) for c, g in zip(turn.calls, good, strict=True))]
    assert [c.arguments for c in ask(messages, batch()).calls] == [{"fact": "b"}]


def test_a_batchs_results_may_come_in_any_order() -> None:
    messages = [Message("user", "Look up.")]
    turn = ask(messages, batch())
    messages += [assistant(turn), *(result(call) for call in reversed(turn.calls))]
    assert asked(ask(messages, batch())) == ["charge_card"]


# --- strictness: each is a 400 of the real API ---


def refused(messages: Sequence[Message]) -> str:
    with pytest.raises(Refused) as error:
        read_transcript(messages, token_of, workload())
    with pytest.raises(Refused):
        ask(messages)
    return error.value.rule


CALL = Call("call_1", CHARGE.tool, CHARGE.arguments)
OTHER = Call("call_2", RECEIPT.tool, RECEIPT.arguments)


def test_a_call_without_a_result_is_refused_and_named() -> None:
    messages = [USER, Message("assistant", calls=(CALL,)), Message("user", "continue")]
    assert refused(messages) == "call-without-result"
    with pytest.raises(Refused, match="call_1"):
        ask(messages)


def test_a_call_without_a_result_at_the_end_is_refused() -> None:
    assert refused([USER, Message("assistant", calls=(CALL,))]) == "call-without-result"


def test_a_batch_with_one_result_missing_is_refused() -> None:
    messages = [USER, Message("assistant", calls=(CALL, OTHER)), result(CALL), Message("assistant", "so")]
    assert refused(messages) == "call-without-result"


def test_a_second_result_for_a_call_is_refused() -> None:
    messages = [USER, Message("assistant", calls=(CALL,)), result(CALL), result(CALL)]
    assert refused(messages) == "result-twice"


def test_a_result_for_an_unknown_id_is_refused() -> None:
    assert refused([USER, Message("assistant", calls=(CALL,)), result(OTHER)]) == "result-without-call"


def test_a_result_before_its_call_is_refused() -> None:
    assert refused([USER, result(CALL), Message("assistant", calls=(CALL,))]) == "result-without-call"


def test_a_result_after_another_message_is_refused() -> None:
    messages = [USER, Message("assistant", calls=(CALL,)), Message("system", "hello"), result(CALL)]
    assert refused(messages) == "call-without-result"


def test_an_id_that_is_used_for_two_calls_is_refused() -> None:
    messages = [USER, Message("assistant", calls=(CALL,)), result(CALL), Message("assistant", calls=(CALL,))]
    assert refused(messages) == "call-twice"


@given(st.lists(st.booleans(), max_size=6))
def test_whatever_the_model_asked_for_is_no_broken_transcript(steps: list[bool]) -> None:
    messages = [USER]
    for good in steps:
        turn = ask(messages)
        if not turn.calls:
            break
        messages += [assistant(turn), *(result(call, good=good) for call in turn.calls)]
    received = read_transcript(messages, token_of, workload())
    assert [r.succeeded for r in received] == steps[: len(received)]


# --- transcripts that are text ---


def told(*asks: Ask, value: str = "done", good: bool = True) -> Message:
    """Return a user message in which results stand as text."""
    tokens = [token_of(a.identity) if good else "[ok-0123456789abcdef]" for a in asks]
    lines = [f"{a.tool} o-1 = {value} {token}" for a, token in zip(asks, tokens, strict=True)]
    return Message("user", "\n".join(("Observation:", *lines)))


def test_a_result_that_stands_in_a_user_message_is_progress() -> None:
    assert asked(ask([USER, told(CHARGE)])) == ["send_receipt"]
    assert ask([USER, told(CHARGE), told(RECEIPT)]).answer == "o-1 is paid."


def test_two_results_in_one_user_message_are_both_progress() -> None:
    assert ask([USER, told(CHARGE, RECEIPT)]).answer == "o-1 is paid."


def test_a_result_as_text_is_received_once_and_its_token_is_its_id() -> None:
    (received,) = read_transcript([USER, told(CHARGE), told(CHARGE)], token_of, workload())
    assert (received.id, received.tool, received.succeeded) == (
        token_of(CHARGE.identity),
        "charge_card",
        True,
    )


def test_a_result_as_text_that_also_has_its_message_is_not_received_twice() -> None:
    messages = [*after(True), told(CHARGE)]
    assert [r.id for r in read_transcript(messages, token_of, workload())] == [
        message.call_id for message in messages if message.role == "tool"
    ]


def test_a_failed_result_as_text_is_no_progress_however_often() -> None:
    assert asked(ask([USER, *[told(CHARGE, good=False)] * 3])) == ["charge_card"]


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_a_token_that_the_agent_itself_says_is_no_progress(role: str) -> None:
    assert asked(ask([USER, Message(role, told(CHARGE).text)])) == ["charge_card"]


def test_the_value_of_a_result_as_text_is_known() -> None:
    messages = [USER, told(LOOKUPS[0], value="7"), Message("user", "And again, #second.")]
    assert ask(messages).answer == "7 it is."


def test_an_answer_is_handed_to_the_tool_that_takes_it() -> None:
    turn = next_turn(workload(), after(True, True), token_of, lambda: "call_1", "final_answer")
    assert turn == Turn(calls=(Call("call_1", "final_answer", {"answer": "o-1 is paid."}),))
    assert asked(next_turn(workload(), after(True), token_of, lambda: "call_1", "final_answer")) == [
        "send_receipt"
    ]
