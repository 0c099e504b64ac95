"""Runs shots: plans their trials, submits them to an executor, judges, journals, repeats where trials differ.

The executor is anything whose `submit(TrialPlan)` returns a `concurrent.futures.Future[History]`. The runner
writes nothing but the journal and prints nothing: it reports to a `Watcher`.
"""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from arena.cells import Shot
from arena.checkers import call_counts, effect_counts, judge
from arena.journal import Journal, Judged, Record
from arena.scenario import Trial
from arena.targets import Target, trial_plan
from arena.verdicts import FRESH, REPLACED, differs, planned_trials
from harness.history import History
from harness.plan import TrialPlan


class Executor(Protocol):
    """Where trials run."""

    def submit(self, plan: TrialPlan, /) -> concurrent.futures.Future[History]:
        """Run a trial; the result is its history."""
        ...


class Watcher(Protocol):
    """Whoever follows a run."""

    def planned(self, total: int) -> None:
        """The run now has this many trials in all."""
        ...

    def finished(self, shot: Shot, record: Record) -> None:
        """A trial has finished."""
        ...


class CeilingReached(Exception):
    """The run's ceiling cut a trial; what is in the journal stands, and `--continue` goes on."""


@dataclass
class _State:
    """How far a shot is."""

    shot: Shot
    planned: int
    straight_to_fresh: bool
    records: list[Record] = field(default_factory=list)
    submitted: int = 0
    running: int = 0
    outcomes: set[str] = field(default_factory=set)

    @property
    def round(self) -> int:
        if self.straight_to_fresh:
            return 2
        good = [r for r in self.records if not r.is_error]
        return 2 if len(good) >= self.planned and differs(good) else 1

    @property
    def wanted(self) -> int:
        """Trials that are to be submitted in all, as far as is known now."""
        errors = sum(record.is_error for record in self.records)
        replacements = min(errors, REPLACED)
        fresh = planned_trials(self.shot, FRESH)
        if self.straight_to_fresh:
            return fresh + replacements
        first = self.planned + replacements
        return first + fresh if self.round == 2 else first


def record_of(shot: Shot, number: int, round_: int, history: History) -> Record:
    """Return the record of a trial: its history judged for each use of the key."""
    item = number % len(shot.scenario.items)
    judged: dict[str, Judged] = {}
    for key in shot.keys:
        if shot.lacks(key) is not None:
            continue
        trial = Trial(shot.scenario.items[item], keyed=key == "with")
        outcome = judge(history, shot.scenario, trial)
        try:
            counts = {**effect_counts(history, trial), **call_counts(history)}
        except KeyError:
            counts = {}
        judged[key or "calls"] = Judged(outcome.verdict, outcome.anomalies, outcome.reason, counts)
    kinds = {e["key_kind"] for e in history.of("recorded", "arrived") if "key_kind" in e.facts}
    checks: dict[str, bool] = {}
    for event in history.of("checked"):
        checks[event["check"]] = checks.get(event["check"], True) and event["ok"]
    return Record(
        shot.id,
        number,
        round_,
        item,
        history.digest(),
        judged,
        tuple(_exit(history, e.leg, e["how"], e["status"]) for e in history.of("leg-ended")),
        checks,
        None if not kinds else "call-id" if kinds == {"call-id"} else "other",
        history.to_json(),
    )


def _exit(history: History, leg: int | None, how: str, status: int) -> str:
    limit = " at its limit" if history.of("limit", leg=leg) else ""
    return f"{how} {status}{limit}"


def run_shots(
    shots: Sequence[Shot],
    targets: Mapping[tuple[str, str], Target],
    executor: Executor,
    journal: Journal,
    watcher: Watcher,
    *,
    trials: int,
    jobs: int,
    leg_limit_s: float,
    done: Iterable[Record] = (),
    ever_differed: frozenset[str] = frozenset(),
    cold: bool = False,
) -> dict[str, list[Record]]:
    """Run every trial that is still to be run and return all records by shot.

    Args:
        shots: what to run.
        targets: prepared targets by (adapter, version).
        executor: where trials run.
        journal: where records go.
        watcher: who follows.
        trials: trials a cell in the first round.
        jobs: trials that the executor runs at once.
        leg_limit_s: seconds for each leg.
        done: records of an earlier part of the same run; their trials are not run again.
        ever_differed: ids of shots whose trials once differed under the same lock: they start with fresh trials.
        cold: start every leg cold.

    Raises:
        CeilingReached: the run's ceiling has cut a trial; nothing of that trial was kept.
    """
    states = {
        shot.id: _State(shot, planned_trials(shot, trials), shot.id in ever_differed)
        for shot in shots
        if shot.lacking is None
    }
    for record in done:
        state = states[record.shot]
        state.records.append(record)
        state.outcomes.add(record.outcome)
    for state in states.values():
        state.submitted = len(state.records)
    queue = deque(states.values())
    running: dict[concurrent.futures.Future[History], tuple[_State, int, int]] = {}
    finished_numbers = {state.shot.id: {r.number for r in state.records} for state in states.values()}

    def submit_more() -> None:
        while queue and len(running) < 2 * jobs:
            state = queue[0]
            if state.submitted >= state.wanted:
                queue.popleft()
                continue
            numbers = finished_numbers[state.shot.id]
            number = next(n for n in range(len(numbers) + 1) if n not in numbers)
            numbers.add(number)
            plan = trial_plan(state.shot, number, targets, leg_limit_s, cold=cold)
            running[executor.submit(plan)] = (state, number, state.round)
            state.submitted += 1
            state.running += 1

    watcher.planned(sum(state.wanted for state in states.values()))
    submit_more()
    while running:
        finished, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in finished:
            state, number, round_ = running.pop(future)
            history = future.result()
            state.running -= 1
            if any(event["which"] == "ceiling" for event in history.of("limit")):
                raise CeilingReached
            record = record_of(state.shot, number, round_, history)
            if record.outcome in state.outcomes:
                record = _without_history(record)
            state.outcomes.add(record.outcome)
            before = state.wanted
            state.records.append(record)
            journal.add(record)
            watcher.finished(state.shot, record)
            if state.wanted > before:
                queue.appendleft(state)
                watcher.planned(sum(s.wanted for s in states.values()))
        submit_more()
    return {shot.id: states[shot.id].records if shot.id in states else [] for shot in shots}


def _without_history(record: Record) -> Record:
    return Record(
        record.shot,
        record.number,
        record.round,
        record.item,
        record.digest,
        record.judged,
        record.exits,
        record.checks,
        record.key_kind,
        None,
    )
