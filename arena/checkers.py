"""Checkers: pure functions from a history to what broke. They read facts; an absent fact raises.

`judge` turns a trial's history into an outcome. A rule of a scenario returns the anomalies it found. Nothing
here starts, reads or writes anything, and nothing knows a framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arena.words import ANOMALIES, Anomaly, Verdict
from harness.history import Event, History
from harness.model import identity

if TYPE_CHECKING:
    from arena.scenario import Scenario, Trial

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
Found = frozenset[Anomaly]
_NOTHING: Found = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial showed, for one use of the key.

    Attributes:
        verdict: PASS, FAIL or ERROR.
        anomalies: in the order of `arena.words.ANOMALIES`.
        reason: why it is an ERROR; empty otherwise.
    """

    verdict: Verdict
    anomalies: tuple[Anomaly, ...] = ()
    reason: str = ""


def judge(history: History, scenario: Scenario, trial: Trial) -> Outcome:
    """Return the outcome of a trial. A failed check, a missing fact or a raising rule gives ERROR."""
    try:
        error = trial_error(history)
        if error:
            return Outcome("ERROR", reason=error)
        if trial.keyed and not any("key_kind" in e.facts for e in history.of("recorded", "arrived")):
            return Outcome("ERROR", reason="the tool sent no key, and the adapter does not say why")
        found = frozenset[Anomaly]().union(*(rule(history, trial) for rule in scenario.rules))
    except Exception as raised:
        return Outcome("ERROR", reason=f"a checker raised {type(raised).__name__}: {raised}")
    anomalies = tuple(a for a in ANOMALIES if a in found)
    return Outcome("FAIL" if anomalies else "PASS", anomalies)


def trial_error(history: History) -> str:
    """Return why the trial did not run as designed, or an empty text.

    It ran as designed when no check failed, what the target says of itself agrees with what the harness read,
    and the history was closed: every process dead and every socket drained.
    """
    for event in history.of("error"):
        return str(event["reason"])
    for event in history.of("checked"):
        if not event["ok"]:
            return f"check failed: {event['check']}"
    versions = {e.leg: e["version"] for e in history.of("leg-started") if "version" in e.facts}
    for hello in history.of("hello"):
        said = hello.facts.get("said_version")
        if said is not None and hello.leg in versions and said != versions[hello.leg]:
            return f"the target says it is version {said}, its environment holds {versions[hello.leg]}"
    for event in history.of("mode-read"):
        if event["found"] != event["asked"]:
            return f"the mode was asked for as {event['asked']} and read back as {event['found']}"
    if not history.events or history.events[-1].kind != "closed":
        return "the history was not closed: a late charge could be missing"
    return ""


def expected_calls(trial: Trial, tools: Iterable[str]) -> dict[str, int]:
    """Return how often each (tool, arguments) of the workload is expected: once, for these tools."""
    wanted = set(tools)
    return {
        ask.identity: 1
        for question in trial.item.workload.questions
        for batch in question.turns
        for ask in batch
        if ask.tool in wanted
    }


EFFECTS = ("charge_card", "send_receipt")
READS = ("lookup", "calculator")


def effect_counts(history: History, trial: Trial) -> dict[str, int]:
    """Return how many distinct effects the provider recorded for each (name, arguments), expected ones included.

    Without a key every record is an effect; with it, records with the same name, arguments and key are one.
    """
    seen: dict[str, list[Any]] = {name: [] for name in expected_calls(trial, EFFECTS)}
    for event in history.of("recorded"):
        key = event.facts.get("key") if trial.keyed else None
        records = seen.setdefault(identity(event["name"], event["arguments"]), [])
        if key is None or key not in records:
            records.append(key)
    return {name: len(records) for name, records in seen.items()}


def call_counts(history: History) -> dict[str, int]:
    """Return how often each (tool, arguments) of the reading tools arrived, over all legs."""
    counts: dict[str, int] = {}
    for event in history.of("arrived"):
        if event["what"] == "call":
            name = identity(event["name"], event["arguments"])
            counts[name] = counts.get(name, 0) + 1
    return counts


def finished_calls(history: History) -> dict[str, tuple[int, int]]:
    """Return, for each call that finished, the leg and the position of the event that shows it.

    A call is finished once a later model request of the leg in which it arrived shows that its result was
    received (design §6).
    """
    arrived: set[tuple[int | None, str]] = set()
    finished: dict[str, tuple[int, int]] = {}
    for position, event in enumerate(history):
        if event.kind == "arrived":
            arrived.add((event.leg, identity(event["name"], event["arguments"])))
        elif event.kind == "model-asked":
            for _, tool, arguments, succeeded in event["received"]:
                name = identity(tool, arguments)
                if succeeded and (event.leg, name) in arrived and event.leg is not None:
                    finished.setdefault(name, (event.leg, position))
    return finished


def effects_exactly_once(history: History, trial: Trial) -> Found:
    """Every effect of the workload happened exactly once, and no other happened."""
    wanted = expected_calls(trial, EFFECTS)
    found: set[Anomaly] = set()
    for name, count in effect_counts(history, trial).items():
        if count < wanted.get(name, 0):
            found.add("lost")
        elif count > wanted.get(name, 0):
            found.add("duplicated")
            if _asked_anew(history, name):
                found.add("asked-again")
    return frozenset(found)


def _asked_anew(history: History, name: str) -> bool:
    """Return whether the model, in a later leg, made a call again that had not finished by then."""
    finished = finished_calls(history).get(name)
    first_leg: int | None = None
    for position, event in enumerate(history):
        if event.kind != "model-answered" or event.leg is None:
            continue
        if not any(identity(tool, arguments) == name for _, tool, arguments in event.facts.get("calls", ())):
            continue
        if first_leg is None:
            first_leg = event.leg
        elif event.leg > first_leg:
            return finished is None or finished[1] > position
    return False


def nothing_finished_runs_again(history: History, _: Trial) -> Found:
    """No call that had finished arrived again in a later leg."""
    finished = finished_calls(history)
    for event in history.of("arrived"):
        name = identity(event["name"], event["arguments"])
        if name in finished and event.leg is not None and event.leg > finished[name][0]:
            return frozenset(("replayed",))
    return _NOTHING


def calls_exactly_once(history: History, trial: Trial) -> Found:
    """Every reading call of the workload arrived exactly once over all legs."""
    counts = call_counts(history)
    found: set[Anomaly] = set()
    for name in expected_calls(trial, READS):
        count = counts.get(name, 0)
        if count == 0:
            found.add("lost")
        elif count > 1:
            found.add("replayed" if name in finished_calls(history) else "asked-again")
    return frozenset(found)


def answer_is_right(history: History, trial: Trial) -> Found:
    """The last answer, compared as a number, is the right one. Without an answer there is nothing to compare."""
    answers = history.of("answer")
    if not answers or trial.item.answer is None:
        return _NOTHING
    numbers = _NUMBER.findall(str(answers[-1]["text"]).replace(",", ""))
    right = bool(numbers) and abs(float(numbers[-1]) - trial.item.answer) < 1e-9
    return _NOTHING if right else frozenset(("wrong-answer",))


def resume_ends(history: History, _: Trial) -> Found:
    """The last leg ended by itself with status 0 and handed in an answer."""
    return leg_end(history, history.of("leg-ended")[-1])


def leg_end(history: History, end: Event) -> Found:
    """Return what a leg's end says: nothing, or one of hung, run-lost, crashed, unfinished.

    `run-lost`: it failed without a single request to the model, a tool or the provider: what had been accepted
    cannot be resumed.
    """
    leg = end.leg
    if history.of("limit", leg=leg):
        return frozenset(("hung",))
    if end["how"] != "exited" or end["status"] != 0:
        asked = history.of("model-asked", "model-refused", "arrived", "answer", "paused", leg=leg)
        return frozenset(("crashed",) if asked else ("run-lost",))
    if not history.of("answer", leg=leg):
        return frozenset(("unfinished",))
    return _NOTHING


def poisoned(history: History, _: Trial) -> Found:
    """The model's API refused no transcript."""
    return frozenset(("poisoned",)) if history.of("model-refused") else _NOTHING
