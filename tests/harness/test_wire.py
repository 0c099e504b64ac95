"""The OpenAI wire formats: what a client would make of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Call, Refused, Turn
from harness.wire import answer_tool, chat_messages, chat_reply, chat_stream, refusal

json_values = st.one_of(st.text(max_size=20), st.integers(-(10**6), 10**6), st.booleans(), st.none())
calls = st.builds(
    Call,
    id=st.from_regex(r"call_[0-9a-f]{8}", fullmatch=True),
    tool=st.sampled_from(("lookup", "charge_card")),
    arguments=st.dictionaries(st.text(max_size=8), json_values, max_size=3),
)
turns = st.one_of(
    st.builds(Turn, calls=st.lists(calls, min_size=1, max_size=4, unique_by=lambda c: c.id).map(tuple)),
    st.builds(Turn, answer=st.text(max_size=40)),
)


def assembled(parts: list[bytes]) -> tuple[dict[str, Any], str | None, Any]:
    """Put a stream together as a client does: the message, the finish reason, the usage."""
    text = b"".join(parts).decode()
    assert text.endswith("data: [DONE]\n\n")
    message: dict[str, Any] = {"role": None, "content": None}
    tool_calls: dict[int, dict[str, Any]] = {}
    finish, usage = None, None
    for event in text.split("\n\n")[:-2]:
        assert event.startswith("data: ")
        chunk = json.loads(event.removeprefix("data: "))
        assert chunk["object"] == "chat.completion.chunk"
        usage = chunk.get("usage", usage)
        for choice in chunk["choices"]:
            delta = choice["delta"]
            finish = choice["finish_reason"] or finish
            message["role"] = delta.get("role", message["role"])
            if delta.get("content") is not None:
                message["content"] = (message["content"] or "") + delta["content"]
            for part in delta.get("tool_calls", ()):
                call = tool_calls.setdefault(
                    part["index"], {"id": "", "type": "", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += part.get("id", "")
                call["type"] = part.get("type", call["type"])
                for name in ("name", "arguments"):
                    call["function"][name] += part["function"].get(name, "")
    if tool_calls:
        message["tool_calls"] = [tool_calls[index] for index in sorted(tool_calls)]
    return message, finish, usage


def shown(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("role", "content", "tool_calls") if name in message}


@given(turns)
def test_a_stream_says_the_same_as_a_reply_without_streaming(turn: Turn) -> None:
    choice = json.loads(chat_reply(turn, "chatcmpl-1"))["choices"][0]
    message, finish, _ = assembled(list(chat_stream(turn, "chatcmpl-1", with_usage=False)))
    assert (message, finish) == (shown(choice["message"]), choice["finish_reason"])


@given(turns)
def test_what_the_model_says_is_read_back_from_a_transcript(turn: Turn) -> None:
    message = json.loads(chat_reply(turn, "chatcmpl-1"))["choices"][0]["message"]
    (read,) = chat_messages({"messages": [message]})
    assert (read.role, read.calls, read.text) == ("assistant", turn.calls, turn.answer or "")


def test_usage_is_streamed_only_when_it_is_asked_for() -> None:
    turn = Turn(answer="hello")
    assert assembled(list(chat_stream(turn, "c", with_usage=True)))[2] is not None
    assert assembled(list(chat_stream(turn, "c", with_usage=False)))[2] is None


def test_every_chunk_of_a_stream_has_the_replys_id() -> None:
    parts = list(chat_stream(Turn(answer="hello"), "chatcmpl-7", with_usage=True))
    ids = {json.loads(part.removeprefix(b"data: "))["id"] for part in parts[:-1]}
    assert ids == {"chatcmpl-7"}


def test_a_developer_message_is_a_system_message() -> None:
    (message,) = chat_messages({"messages": [{"role": "developer", "content": "be brief"}]})
    assert (message.role, message.text) == ("system", "be brief")


def test_content_in_parts_is_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (message,) = chat_messages({"messages": [{"role": "user", "content": parts}]})
    assert message.text == "ab"


def test_a_tool_message_names_its_call() -> None:
    (message,) = chat_messages({"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "done"}]})
    assert (message.call_id, message.text) == ("call_1", "done")


def test_arguments_that_are_no_json_object_are_kept_apart() -> None:
    for text in ("{", "[1]", "7", ""):
        call = {"id": "c", "type": "function", "function": {"name": "lookup", "arguments": text}}
        (message,) = chat_messages(
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
        )
        assert message.calls[0].arguments is None


@pytest.mark.parametrize("body", [{}, {"messages": []}, {"messages": "hello"}])
def test_a_request_without_messages_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(Refused) as error:
        chat_messages(body)
    assert error.value.rule == "no-messages"


@pytest.mark.parametrize("row", [{}, "hello", {"content": "x"}, {"role": 3}])
def test_a_message_without_a_role_is_refused(row: Any) -> None:
    with pytest.raises(Refused) as error:
        chat_messages({"messages": [row]})
    assert error.value.rule == "no-role"


def test_a_refusal_has_the_form_of_the_real_apis_error() -> None:
    error = json.loads(refusal(Refused("result-twice", "Duplicate tool result.")))["error"]
    assert (error["message"], error["type"]) == ("Duplicate tool result.", "invalid_request_error")


def offered(*tools: tuple[str, tuple[str, ...]], choice: str = "required") -> dict[str, Any]:
    """Return a request that offers tools by their names and parameters."""
    rows = [
        {"type": "function", "function": {"name": n, "parameters": {"properties": {key: {} for key in p}}}}
        for n, p in tools
    ]
    return {"messages": [], "tools": rows, "tool_choice": choice}


CHARGE = ("charge_card", ("order", "amount"))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (offered(CHARGE, ("final_answer", ("answer",))), "final_answer"),
        (offered(CHARGE, ("final_answer", ("answer",)), choice="auto"), None),
        (offered(CHARGE), None),
        (offered(CHARGE, ("reply", ("answer", "mood"))), None),
        ({"messages": [], "tool_choice": "required"}, None),
        ({"messages": []}, None),
    ],
)
def test_an_answer_goes_to_a_tool_where_a_call_is_demanded(body: dict[str, Any], name: str | None) -> None:
    assert answer_tool(body) == name
