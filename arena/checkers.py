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
from harness.history import CHECKS, Event, History
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
        recorded = history.of("recorded")
        if trial.keyed and recorded and not any("key" in event.facts for event in recorded):
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
            return f"check failed: {CHECKS.get(event['check'], event['check'])}"
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
    """Return whether the model made a call again, under a new id, that had not finished by then."""
    finished = finished_calls(history).get(name)
    asked = False
    for position, event in enumerate(history):
        if event.kind != "model-answered":
            continue
        if any(identity(tool, arguments) == name for _, tool, arguments in event.facts.get("calls", ())):
            if asked:
                return finished is None or finished[1] > position
            asked = True
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
    finished = finished_calls(history)
    found: set[Anomaly] = set()
    for name in expected_calls(trial, READS):
        count = counts.get(name, 0)
        if count == 0:
            found.add("lost")
        elif count > 1:
            second = [p for p, event in enumerate(history) if _arrives(event, name)][1]
            done = name in finished and finished[name][1] < second
            found.add("replayed" if done else "asked-again" if _asked_anew(history, name) else "duplicated")
    return frozenset(found)


def _arrives(event: Event, name: str) -> bool:
    return event.kind == "arrived" and identity(event["name"], event["arguments"]) == name


def answer_is_right(history: History, trial: Trial) -> Found:
    """The last answer, compared as a number, is the right one. Without an answer there is nothing to compare."""
    answers = history.of("answer")
    if not answers or trial.item.answer is None:
        return _NOTHING
    numbers = _NUMBER.findall(str(answers[-1]["text"]).replace(",", ""))
    right = bool(numbers) and abs(float(numbers[-1]) - trial.item.answer) < 1e-9
    return _NOTHING if right else frozenset(("wrong-answer",))


def the_run_ends(history: History, _: Trial) -> Found:
    """Some process ended by itself with status 0 and an answer, and none met its limit.

    Where one did, others may have been refused: a second decision, a resume after the end, the loser of a race.
    Where none did, every leg that was not killed says why.
    """
    if any(event["which"] == "leg" for event in history.of("limit")):
        return frozenset(("hung",))
    ends = history.of("leg-ended")
    if any(ended_well(history, end) for end in ends):
        return _NOTHING
    killed = {event.leg for event in history.of("struck") if event["action"] == "kill"}
    said = [leg_end(history, end) for end in ends if end.leg not in killed]
    if not said:
        raise ValueError("every leg was killed")
    last = [leg_end(history, ends[-1])] if len(said) == 1 else said
    return frozenset[Anomaly]().union(*last)


def second_leg_ends(history: History, _: Trial) -> Found:
    """The process that took over, the second one, ended by itself with status 0 and an answer."""
    return leg_end(history, history.of("leg-ended", leg=1)[0])


def last_leg_ends(history: History, _: Trial) -> Found:
    """The last process itself ended by itself with status 0 and an answer."""
    return leg_end(history, history.of("leg-ended")[-1])


def ended_well(history: History, end: Event) -> bool:
    """Return whether a leg ended by itself with status 0 and had handed in an answer."""
    return end["how"] == "exited" and end["status"] == 0 and bool(history.of("answer", leg=end.leg))


def leg_end(history: History, end: Event) -> Found:
    """Return what a leg's end says: nothing, or one of hung, run-lost, crashed, unfinished.

    `run-lost`: it failed without a single request to the model, a tool or the provider: what had been accepted
    cannot be resumed. A leg that waits for a person has not failed; whether it may is another rule's business.
    """
    leg = end.leg
    if history.of("limit", leg=leg):
        return frozenset(("hung",))
    if end["how"] != "exited" or end["status"] != 0:
        asked = history.of("model-asked", "model-refused", "arrived", "answer", "paused", leg=leg)
        return frozenset(("crashed",) if asked else ("run-lost",))
    if not history.of("answer", "paused", leg=leg):
        return frozenset(("unfinished",))
    return _NOTHING


def no_transcript_refused(history: History, _: Trial) -> Found:
    """The model's API refused no transcript."""
    return frozenset(("poisoned",)) if history.of("model-refused") else _NOTHING


def charged_as_decided(history: History, trial: Trial) -> Found:
    """Approved: charged exactly once. Denied: never. Nothing before the first decision.

    Where the run waits for a person again, the charge is not lost, the approval is forgotten.
    """
    charge = next(
        a for q in trial.item.workload.questions for b in q.turns for a in b if a.tool == "charge_card"
    )
    decision: str | None = None
    found: set[Anomaly] = set()
    for event in history:
        if event.kind == "leg-started" and decision is None:
            decision = event.facts.get("environment", {}).get("PLUGPULL_DECISION")
        elif event.kind == "recorded" and decision is None:
            found.add("unapproved")
    if decision is None:
        raise ValueError("no leg was told a decision")
    count = effect_counts(history, trial)[charge.identity]
    if decision == "deny" and count:
        found.add("unapproved")
    elif decision == "approve" and count > 1:
        found.add("duplicated")
    elif (
        decision == "approve" and count == 0 and not history.of("paused", leg=history.of("leg-ended")[-1].leg)
    ):
        found.add("lost")
    return frozenset(found)


def decision_is_kept(history: History, _: Trial) -> Found:
    """Once a process has been told the decision, no process waits for a person again."""
    told = [e.leg for e in history.of("leg-started") if "PLUGPULL_DECISION" in e.facts.get("environment", {})]
    if not told or told[0] is None:
        raise ValueError("no leg was told a decision")
    again = any(event.leg is not None and event.leg >= told[0] for event in history.of("paused"))
    return frozenset(("approval-forgotten",)) if again else _NOTHING


def effects_once_or_refused(history: History, trial: Trial) -> Found:
    """Every effect exactly once; where the last process refused to work, no effect more than once.

    Refused: it ended with an error before it asked the model, a tool or the provider for anything.
    """
    found = effects_exactly_once(history, trial)
    return found - {"lost"} if _refused(history) else found


def ends_or_refuses(history: History, trial: Trial) -> Found:
    """The last process ended well or refused to work."""
    return _NOTHING if _refused(history) else the_run_ends(history, trial)


def _refused(history: History) -> bool:
    return leg_end(history, history.of("leg-ended")[-1]) == {"run-lost"}


def items_stored_exactly_once(history: History, _: Trial) -> Found:
    """Every item that was ever written to the session store is there exactly once when all is over.

    Items that the framework itself removed again (`pop`, `clear`) are not expected. The lost write must have made
    the run fail: a start that ended well after it did not run as designed (seeds, decisions §8).
    """
    first = history.of("leg-ended", leg=0)[0]
    if first["how"] == "exited" and first["status"] == 0:
        raise ValueError("the lost write did not make the run fail")
    struck = next(p for p, event in enumerate(history) if event.kind == "struck")
    if any(e.kind == "arrived" and e["what"] == "write" and e.leg == 0 for e in history.events[struck + 1 :]):
        raise ValueError("the start kept writing to the session after the lost write")
    held: dict[tuple[str, str], int] = {}
    read: set[str] = set()
    for event in history.of("store"):
        read.add(event["session"])
        held.update({(event["session"], item): count for item, count in event["items"].items()})
    wanted: set[tuple[str, str]] = set()
    for event in history.of("arrived"):
        if event["what"] == "write":
            wanted |= {(event["name"], item) for item in event["arguments"]["items"]}
    unread = {session for session, _ in wanted} - read
    if unread:
        raise ValueError(f"what the store holds of {', '.join(sorted(unread))} is not known")
    removed = any(event["operation"] in ("pop", "clear") for event in history.of("stored"))
    found: set[Anomaly] = set()
    for item in wanted:
        count = held.get(item, 0)
        if count == 0 and not removed:
            found.add("lost")
        elif count > 1:
            found.add("duplicated")
    return frozenset(found)


def nothing_more_after_the_end(history: History, _: Trial) -> Found:
    """After a process has ended well, no call and no effect arrives."""
    over = False
    for event in history:
        if event.kind == "leg-ended" and ended_well(history, event):
            over = True
        elif event.kind == "arrived" and over:
            return frozenset(("replayed",))
    return _NOTHING


def repeats_told_apart(history: History) -> dict[str, int]:
    """Return how calls came to be repeated: by the framework's own retry, or because the model asked again.

    A retry of the framework arrives in the same leg with no new call of the model in between; the client module
    never retries, and a model client's retry is marked in its request.
    """
    counts = {"framework_retries": 0, "model_asked_again": 0, "client_retries": 0, "resumed": 0}
    seen: dict[str, tuple[int | None, int]] = {}
    asked: dict[str, int] = {}
    for event in history:
        if event.kind == "model-asked" and event["retry"]:
            counts["client_retries"] += 1
        elif event.kind == "model-answered":
            for _, tool, arguments in event.facts.get("calls", ()):
                name = identity(tool, arguments)
                asked[name] = asked.get(name, 0) + 1
        elif event.kind == "arrived":
            name = identity(event["name"], event["arguments"])
            before = seen.get(name)
            now = (event.leg, asked.get(name, 0))
            if before is not None:
                if now[1] > before[1]:
                    counts["model_asked_again"] += 1
                elif now[0] == before[0]:
                    counts["framework_retries"] += 1
                else:
                    counts["resumed"] += 1
            seen[name] = now
    return counts
