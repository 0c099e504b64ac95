"""The OpenAI wire formats: a request's body to a transcript, a turn to a body or a stream of events. Pure.

Chat completions as in https://platform.openai.com/docs/api-reference/chat (read 2026-11-30). Knows no policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.model import Call, Message, Refused, Turn

_MODEL = "scripted"
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def chat_messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the transcript of a chat completions request.

    Raises:
        Refused: the body has no list of messages, or a message has no role.
    """
    rows = body.get("messages")
    if not isinstance(rows, list) or not rows:
        raise Refused("no-messages", "'messages' must be a list with at least one message.")
    return tuple(_chat_message(row) for row in rows)


def answer_tool(body: Mapping[str, Any]) -> str | None:
    """Return the tool that an answer must be handed to: the one that takes an `answer`, where a call is demanded."""
    if body.get("tool_choice") != "required":
        return None
    for tool in body.get("tools") or ():
        function = tool.get("function") or {}
        parameters = function.get("parameters") or {}
        if list(parameters.get("properties") or ()) == ["answer"]:
            return str(function.get("name"))
    return None


def _chat_message(row: Any) -> Message:
    if not isinstance(row, dict) or not isinstance(row.get("role"), str):
        raise Refused("no-role", "A message must be an object with a 'role'.")
    role: str = "system" if row["role"] == "developer" else row["role"]
    calls = tuple(
        Call(
            str(call.get("id", "")), str(call["function"]["name"]), _arguments(call["function"]["arguments"])
        )
        for call in row.get("tool_calls") or ()
    )
    return Message(role, _text(row.get("content")), calls, str(row.get("tool_call_id", "")))


def _arguments(text: Any) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def _call_json(call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def chat_reply(turn: Turn, reply_id: str) -> bytes:
    """Return the body that answers a chat completions request without streaming."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.answer, "refusal": None}
    if turn.calls:
        message["tool_calls"] = [_call_json(call) for call in turn.calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if turn.calls else "stop",
    }
    body = {
        "id": reply_id,
        "object": "chat.completion",
        "created": 0,
        "model": _MODEL,
        "choices": [choice],
        "usage": _USAGE,
    }
    return json.dumps(body).encode()


def chat_stream(turn: Turn, reply_id: str, with_usage: bool) -> Iterator[bytes]:
    """Yield the server-sent events that answer a chat completions request with streaming."""

    def event(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        chunk: dict[str, Any] = {
            "id": reply_id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": _MODEL,
            "choices": choices,
        }
        if usage is not None:
            chunk["usage"] = usage
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    def delta(fields: dict[str, Any], finish: str | None = None) -> bytes:
        return event([{"index": 0, "delta": fields, "finish_reason": finish}])

    if turn.calls:
        yield delta({"role": "assistant", "content": None})
        for index, call in enumerate(turn.calls):
            shape = _call_json(call)
            yield delta({"tool_calls": [{"index": index, **shape}]})
        yield delta({}, "tool_calls")
    else:
        yield delta({"role": "assistant", "content": ""})
        yield delta({"content": turn.answer})
        yield delta({}, "stop")
    if with_usage:
        yield event([], _USAGE)
    yield b"data: [DONE]\n\n"


def refusal(refused: Refused) -> bytes:
    """Return the body of the 400 that the real API gives for a broken transcript."""
    return json.dumps(
        {
            "error": {
                "message": str(refused),
                "type": "invalid_request_error",
                "param": "messages",
                "code": None,
            }
        }
    ).encode()
