"""The history of a trial: all that the harness saw, in one order, with kernel facts. Data only.

A history is the evidence that verdicts are derived from. A fact that was not measured is absent; reading an
absent fact raises `KeyError`, which makes the verdict ERROR: absent is never zero.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: The kinds of events, and what each says. Facts in brackets are absent when they were not measured.
KINDS: Mapping[str, str] = {
    "leg-started": "a process of the agent began: word, pid, start, hash_seed, executable, version",
    "hello": "what the target says of itself; believed only where it agrees with what the harness read",
    "model-asked": "a request to the model: turn, retry, streamed, received (results seen in the transcript)",
    "model-refused": "the transcript broke a rule of the real API: rule, text",
    "model-answered": "the model's turn: calls (id, tool, arguments), or answer",
    "arrived": "a request of a tool or the store: what (effect, call, write), name, arguments, pid, n, [key, key_kind]",
    "recorded": "the provider recorded an effect: name, arguments, [key, key_kind]",
    "answered": "the answer to a tool's request was sent: what, name, arguments, n",
    "stored": "the session store has changed: session, operation (append, pop, clear), items, n",
    "store": "what a session holds when the trial is over: session, items (each item's JSON, how often)",
    "paused": "the target says that its framework has saved a run that waits for a person",
    "answer": "the final answer: text",
    "held": "a request is held at a point: point",
    "rest": "whether all threads of the group slept when the fault struck: rested, seconds",
    "checked": "facts about a fault, from the kernel: check, ok, and the facts it rests on",
    "struck": "a fault was carried out: action, point, signal, group",
    "gone": "the connection of a held request closed: point, seconds since the strike",
    "limit": "a limit ended a leg: which (leg, ceiling), seconds",
    "leg-ended": "how: exited or killed, status, cpu_s, seconds, [state_bytes], [stderr]",
    "left-behind": "a process outlived its leg: pid, group, in_group, and how it ended",
    "mode-read": "the mode as read back from the store: asked, found",
    "barrier": "a barrier released its requests: reason (both, ended, timeout)",
    "error": "the trial could not go on as designed: reason",
    "closed": "every process is dead and every socket drained",
}

#: The checks of faults, and what each says when it holds.
CHECKS: Mapping[str, str] = {
    "open": "the agent runs and its request is open",
    "holders": "everyone who holds the request is in the agent's process group",
    "interpreter": "the agent executes its environment's interpreter",
    "closed": "the held connection closed within 1 s",
    "killed": "the wait status says killed by SIGKILL",
    "stopped": "the wait status says stopped",
    "still-open": "the stopped agent's request is still open",
    "continued": "the wait status says continued",
    "terminated": "the wait status says how the terminated agent ended",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing the harness saw.

    Attributes:
        at: seconds since the trial began.
        leg: index of the leg it belongs to, from 0; None for the trial itself.
        kind: one of `KINDS`.
        facts: JSON values.
    """

    at: float
    leg: int | None
    kind: str
    facts: Mapping[str, Any]

    def __getitem__(self, fact: str) -> Any:
        return self.facts[fact]


@dataclass(frozen=True, slots=True)
class History:
    """The events of one trial, in the order in which the harness saw them."""

    events: tuple[Event, ...]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def of(self, *kinds: str, leg: int | None = None) -> tuple[Event, ...]:
        """Return the events of these kinds, of one leg if `leg` is given."""
        return tuple(e for e in self.events if e.kind in kinds and (leg is None or e.leg == leg))

    def to_json(self) -> list[list[Any]]:
        """Return the history as a list of [seconds, leg, kind, facts]."""
        return [[round(e.at, 4), e.leg, e.kind, dict(e.facts)] for e in self.events]

    def digest(self) -> str:
        """Return the SHA-256 of the history's canonical JSON, as hexadecimal digits."""
        return hashlib.sha256(canonical(self.to_json()).encode()).hexdigest()


def history_from_json(rows: list[list[Any]]) -> History:
    """Return the history that `History.to_json` wrote.

    Raises:
        ValueError: a row is not [seconds, leg, kind, facts] with a known kind.
    """
    events = []
    for row in rows:
        at, leg, kind, facts = row
        if kind not in KINDS:
            raise ValueError(f"a history has an event of unknown kind {kind!r}")
        events.append(Event(float(at), leg, kind, facts))
    return History(tuple(events))


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
