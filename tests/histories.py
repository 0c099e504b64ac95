"""Builds histories by hand: what a trial would have seen, an event a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from arena.checkers import Found
from arena.scenario import Case, Item, Leg, Rule, Scenario, Strike, Trial, order
from harness.history import Event, History

ORDER: Item = order()
CHARGE = ("charge_card", {"order": "order-1", "amount": 42})
RECEIPT = ("send_receipt", {"order": "order-1"})
Call = tuple[str, Mapping[str, Any]]


def trial(*, keyed: bool = False, item: Item = ORDER) -> Trial:
    """Return what rules may know of a trial."""
    return Trial(item, keyed)


class Story:
    """A history that grows by one method call an event. Each returns the story."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._leg = -1
        self._minted = 0

    def add(self, kind: str, /, *, leg: int | None = None, **facts: Any) -> Story:
        """Add an event of the current leg, or of another."""
        at = len(self._events) / 100
        self._events.append(Event(at, self._leg if leg is None else leg, kind, facts))
        return self

    def start(self, word: str = "start", **facts: Any) -> Story:
        """Begin the next leg."""
        self._leg += 1
        return self.add("leg-started", word=word, pid=100 + self._leg, start="warm", hash_seed="1", **facts)

    def resume(self) -> Story:
        """Begin the next leg as a resume."""
        return self.start("resume")

    def ask(self, *received: Call, failed: bool = False) -> Story:
        """Ask the model, with results that had not been seen in this leg."""
        rows = [
            [f"call_{n}", tool, dict(arguments), not failed] for n, (tool, arguments) in enumerate(received)
        ]
        return self.add("model-asked", turn=1, retry=False, streamed=False, results=len(rows), received=rows)

    def told(self, *calls: Call) -> Story:
        """Let the model ask for calls, under fresh ids."""
        rows = []
        for tool, arguments in calls:
            self._minted += 1
            rows.append([f"call_{self._minted}", tool, dict(arguments)])
        return self.add("model-answered", turn=1, calls=rows)

    def arrive(self, call: Call, key: str | None = None) -> Story:
        """Let a tool's request arrive; what it is follows from the tool."""
        name, arguments = call
        what = "call" if name in ("lookup", "calculator") else "effect"
        return self.add("arrived", what=what, name=name, arguments=dict(arguments), pid=1, n=1, **_key(key))

    def effect(self, call: Call, key: str | None = None) -> Story:
        """Let an effect arrive and be recorded."""
        name, arguments = call
        return self.arrive(call, key).add("recorded", name=name, arguments=dict(arguments), **_key(key))

    def struck(self, ok: bool = True) -> Story:
        """Kill the leg: a check, the strike, its end."""
        self.add("checked", check="killed", ok=ok, how="killed", status=9)
        self.add("struck", action="kill", points=["p"], signal=9, group=100 + self._leg)
        return self.end(9, how="killed")

    def end(self, status: int = 0, how: Literal["exited", "killed"] = "exited") -> Story:
        """End the leg."""
        return self.add("leg-ended", how=how, status=status, cpu_s=0.1, seconds=1.0, state_bytes=10)

    def answer(self, text: str = "order-1 is paid.") -> Story:
        """Hand in an answer."""
        return self.add("answer", text=text, pid=1)

    def open(self) -> History:
        """Return the history as it is, not closed."""
        return History(tuple(self._events))

    def close(self) -> History:
        """Return the history, closed."""
        at = len(self._events) / 100
        return History((*self._events, Event(at, None, "closed", {"drained": 1})))


def _key(key: str | None) -> dict[str, Any]:
    return {} if key is None else {"key": key, "key_kind": "call-id"}


def killed_before(key: str | None = None) -> Story:
    """Return the first leg of a run that was killed before its charge was recorded."""
    return Story().start().ask().told(CHARGE).arrive(CHARGE, key).struck()


def killed_after(key: str | None = None) -> Story:
    """Return the first leg of a run that was killed after its charge was recorded."""
    return Story().start().ask().told(CHARGE).effect(CHARGE, key).struck()


def finishing(story: Story, *, charge_again: bool = True, key: str | None = None) -> Story:
    """Resume a run, charge again if asked to, send the receipt, answer and end well."""
    story.resume()
    if charge_again:
        story.effect(CHARGE, key)
    story.ask(CHARGE).told(RECEIPT).effect(RECEIPT, key and "k-receipt").ask(RECEIPT)
    return story.answer().end()


def scenario(*rules: Rule, **changes: Any) -> Scenario:
    """Return a scenario with one point and these rules."""
    leg = Leg("start", (Strike(("effect:charge_card#1.after",)),))
    case = Case("after-effect", "effect:charge_card#1.after", ((leg,), (Leg("resume"),)), ("rest",))
    made = Scenario("made-up", "what if?", "in-flight effects", (ORDER,), (case,), rules)
    return replace(made, **changes)


def nothing(_: History, __: Trial) -> Found:
    """Return no anomaly: a rule that everything keeps."""
    return frozenset()
