"""The scripted model: which turn follows a transcript. A pure, stateless policy; it knows no wire format.

`POLICY` numbers the rules below. Like a real model it sees only the transcript it is sent:

1. Every call it makes gets a fresh random id.
2. Progress is which (tool, arguments) of the workload have a result that carries the harness's token, over
   the whole transcript. System messages and repeated or extra user messages do not reset it; a workload's
   later question, known by its token in a user message, begins that question's own turns.
3. A result without the token has failed. `ask-once-more` asks again, once, under a new id; `give-up` does not.
4. It is strict, as the real API is: each assistant message with tool calls is followed by exactly one result
   for each of its ids, and no result stands anywhere else. https://platform.openai.com/docs/guides/function-calling
5. Some frameworks write their transcript as text, with no message of the role `tool`. A token in a user message,
   which nobody but the harness can make, shows there that its call has succeeded. A failed result leaves no such
   trace: the call is asked for again until it succeeds.
6. A request that demands a tool call (`tool_choice: required`) gets its answer as one, if a tool is offered that
   takes an `answer` and nothing else.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.history import canonical

POLICY = 2
OnFailure = Literal["ask-once-more", "give-up"]
#: What a tool's result looks like: `charge_card = done [ok-5f0c…]`. The value stands before the token.
_VALUE = re.compile(r"= (?P<value>\S+) \[ok-")


@dataclass(frozen=True, slots=True)
class Ask:
    """A call the workload needs: a tool and its arguments."""

    tool: str
    arguments: Mapping[str, Any]

    @property
    def identity(self) -> str:
        """The text by which two calls are the same call: tool and arguments."""
        return identity(self.tool, self.arguments)


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks and what the model will ask for to answer it.

    Attributes:
        prompt: the user's words. For a second question it contains `token`.
        turns: batches of calls; a batch's calls are asked for in one turn.
        answer: the final text; `{last}` stands for the value of the last call's result in the transcript.
        token: text that makes a later question known; empty for the first.
    """

    prompt: str
    turns: tuple[tuple[Ask, ...], ...]
    answer: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the scripted model will ask for, with an id that changes when it does."""

    id: str
    questions: tuple[Question, ...]
    on_failure: OnFailure = "ask-once-more"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a transcript or in a turn. `arguments` is None when the text was no JSON object."""

    id: str
    tool: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a transcript, whatever the wire format: `user`, `assistant`, `tool` or `system`."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says next: calls, or an answer."""

    calls: tuple[Call, ...] = ()
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A result in a transcript: of which call, and whether it carries the harness's token."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    succeeded: bool


class Refused(Exception):
    """The transcript breaks a rule of the real API. `rule` is a short name, the text what the API says."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule = rule


def identity(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the text by which two calls or effects are the same: name and arguments."""
    return f"{tool}{canonical(dict(arguments))}"


def fresh_call_id() -> str:
    """Return a new random tool-call id; no two calls ever share one."""
    return f"call_{secrets.token_hex(12)}"


@dataclass
class _Reading:
    """What a strict reading of a transcript has found so far."""

    received: list[Received] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


def read_transcript(
    messages: Sequence[Message], token_of: Callable[[str], str], workload: Workload
) -> tuple[Received, ...]:
    """Return the results in a transcript, in order; those that stand in it as text come last.

    Args:
        messages: the transcript.
        token_of: maps a call's identity to the token that a true result of it carries.
        workload: names the calls whose results may stand in a transcript as text.

    Raises:
        Refused: a call without a result, a result twice, for an unknown id or at the wrong place.
    """
    return tuple(_read(messages, token_of, workload).received)


def next_turn(
    workload: Workload,
    messages: Sequence[Message],
    token_of: Callable[[str], str],
    mint: Callable[[], str] = fresh_call_id,
    answer_tool: str | None = None,
) -> Turn:
    """Return the model's next turn for a transcript, by the policy of this module's docstring.

    Args:
        workload: what it will ask for.
        messages: the transcript.
        token_of: see `read_transcript`.
        mint: makes the id of a call.
        answer_tool: the tool that an answer is handed to; None where it is text.

    Raises:
        Refused: see `read_transcript`.
    """
    reading = _read(messages, token_of, workload)
    done = {identity(r.tool, r.arguments) for r in reading.received if r.succeeded}
    tries: dict[str, int] = {}
    for result in reading.received:
        if not result.succeeded:
            name = identity(result.tool, result.arguments)
            tries[name] = tries.get(name, 0) + 1
    allowed = 1 if workload.on_failure == "give-up" else 2
    question = _question(workload, messages)
    for batch in question.turns:
        missing = [a for a in batch if a.identity not in done and tries.get(a.identity, 0) < allowed]
        if missing:
            return Turn(calls=tuple(Call(mint(), ask.tool, ask.arguments) for ask in missing))
    last = question.turns[-1][-1].identity if question.turns else ""
    answer = question.answer.replace("{last}", reading.values.get(last, "unknown"))
    if answer_tool is not None:
        return Turn(calls=(Call(mint(), answer_tool, {"answer": answer}),))
    return Turn(answer=answer)


def _question(workload: Workload, messages: Sequence[Message]) -> Question:
    for message in reversed(messages):
        if message.role == "user":
            for question in workload.questions[1:]:
                if question.token and question.token in message.text:
                    return question
    return workload.questions[0]


def _read(messages: Sequence[Message], token_of: Callable[[str], str], workload: Workload) -> _Reading:
    reading = _Reading()
    open_calls: dict[str, Call] = {}
    used: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.call_id in used:
                raise Refused("result-twice", f"Duplicate tool result for tool_call_id {message.call_id}.")
            call = open_calls.pop(message.call_id, None)
            if call is None:
                raise Refused(
                    "result-without-call",
                    "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
                )
            used.add(message.call_id)
            arguments = call.arguments or {}
            name = identity(call.tool, arguments)
            succeeded = token_of(name) in message.text
            reading.received.append(Received(call.id, call.tool, arguments, succeeded))
            value = _VALUE.search(message.text)
            if succeeded and value is not None:
                reading.values[name] = value["value"]
            continue
        if open_calls:
            raise _missing(open_calls)
        for call in message.calls:
            if call.id in used or call.id in open_calls:
                raise Refused("call-twice", f"Duplicate tool call id {call.id}.")
            open_calls[call.id] = call
    if open_calls:
        raise _missing(open_calls)
    _read_text(messages, token_of, workload, reading)
    return reading


def _read_text(
    messages: Sequence[Message], token_of: Callable[[str], str], workload: Workload, reading: _Reading
) -> None:
    """Add the results that stand in user messages as text; a result's token serves as its id."""
    known = {identity(r.tool, r.arguments) for r in reading.received if r.succeeded}
    texts = [message.text for message in messages if message.role == "user"]
    asks = {a.identity: a for q in workload.questions for batch in q.turns for a in batch}
    for name, ask in asks.items():
        token = token_of(name)
        text = next((text for text in texts if token in text), None)
        if text is None or name in known:
            continue
        reading.received.append(Received(token, ask.tool, ask.arguments, True))
        value = re.search(rf"= (\S+) {re.escape(token)}", text)
        if value is not None:
            reading.values[name] = value[1]


def _missing(open_calls: Mapping[str, Call]) -> Refused:
    ids = ", ".join(open_calls)
    return Refused(
        "call-without-result",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    )
