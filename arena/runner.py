"""Runs shots: plans their trials, submits them to an executor, judges, journals, repeats where trials differ.

The executor is anything whose `submit(TrialPlan)` returns a `concurrent.futures.Future[History]`. The runner
writes nothing but the journal and prints nothing: it reports to a `Watcher`.
"""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True)
class _Assignment:
    """What a trial was started for. `item` is a boundary's number in round 0 and a job's, or the worst's, later."""

    number: int
    round: int
    item: int


@dataclass
class _State:
    """How far a shot is: which trials are to be started next, and what they are for."""

    shot: Shot
    planned: int
    straight_to_fresh: bool
    boundaries: tuple[str, ...] = ()
    records: list[Record] = field(default_factory=list)
    running: list[_Assignment] = field(default_factory=list)
    outcomes: set[str] = field(default_factory=set)

    @property
    def _good(self) -> list[Record]:
        return [record for record in self.records if not record.is_error]

    @property
    def _replacements(self) -> int:
        return min(len(self.records) - len(self._good), REPLACED)

    @property
    def round(self) -> int:
        """1 while the planned trials run, 2 when their differing has asked for fresh ones."""
        if self.straight_to_fresh:
            return 2
        first = [record for record in self._good if record.round == 1]
        return 2 if len(first) >= self.planned and differs(first) else 1

    @property
    def wanted(self) -> int:
        """Trials that are to be run in all, as far as is known now."""
        fresh = planned_trials(self.shot, FRESH)
        judged = 0 if self.straight_to_fresh else self.planned
        judged += fresh if self.round == 2 else 0
        return len(self.boundaries) + judged + self._replacements

    def next(self) -> _Assignment | None:
        """Return what the next trial is for, or None if nothing is to be started now."""
        if len(self.records) + len(self.running) >= self.wanted:
            return None
        used = {r.number for r in self.records} | {a.number for a in self.running}
        number = next(n for n in range(len(used) + 1) if n not in used)
        if self.boundaries:
            explored = {r.item for r in self._good if r.round == 0}
            explored |= {a.item for a in self.running if a.round == 0}
            for boundary in range(len(self.boundaries)):
                if boundary not in explored:
                    return _Assignment(number, 0, boundary)
            if any(a.round == 0 for a in self.running):
                return None
            return _Assignment(number, self.round, self._worst())
        counts = dict.fromkeys(range(len(self.shot.scenario.items)), 0)
        for item in [r.item for r in self._good if r.round == self.round]:
            counts[item] += 1
        for assignment in self.running:
            counts[assignment.item] += 1
        return _Assignment(number, self.round, min(counts, key=lambda item: (counts[item], item)))

    def _worst(self) -> int:
        """Return the boundary whose exploring trial came out worst; the first of them."""

        def badness(record: Record) -> tuple[int, int]:
            judged = record.judged.values()
            return sum(j.verdict == "FAIL" for j in judged), sum(len(j.anomalies) for j in judged)

        explored = sorted((r for r in self._good if r.round == 0), key=lambda r: r.item)
        return max(explored, key=badness).item


def record_of(
    shot: Shot, number: int, round_: int, item: int, history: History, boundary: str | None = None
) -> Record:
    """Return the record of a trial: its history judged for each use of the key."""
    judged: dict[str, Judged] = {}
    for key in shot.keys:
        if shot.lacks(key) is not None:
            continue
        trial = Trial(shot.scenario.item(item), keyed=key == "with")
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
        boundary,
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
    boundaries: Mapping[str, tuple[str, ...]] | None = None,
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
        boundaries: of an unharmed run, by shot; needed where a scenario explores.
        cold: start every leg cold.

    Raises:
        CeilingReached: the run's ceiling has cut a trial; nothing of that trial was kept.
    """
    there = boundaries or {}
    states = {
        shot.id: _State(
            shot,
            planned_trials(shot, trials),
            shot.id in ever_differed,
            there[shot.id] if shot.scenario.explores else (),
        )
        for shot in shots
        if shot.lacking is None
    }
    for record in done:
        state = states[record.shot]
        state.records.append(record)
        state.outcomes.add(record.outcome)
    queue = deque(states.values())
    running: dict[concurrent.futures.Future[History], tuple[_State, _Assignment]] = {}

    def submit_more() -> None:
        while queue and len(running) < 2 * jobs:
            state = queue[0]
            assignment = state.next()
            if assignment is None:
                queue.popleft()
                continue
            boundary = _boundary(state, assignment)
            item = 0 if state.boundaries else assignment.item
            plan = trial_plan(
                state.shot, assignment.number, item, targets, leg_limit_s, cold=cold, boundary=boundary
            )
            running[executor.submit(plan)] = (state, assignment)
            state.running.append(assignment)

    watcher.planned(sum(state.wanted for state in states.values()))
    submit_more()
    while running:
        finished, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in finished:
            state, assignment = running.pop(future)
            history = future.result()
            state.running.remove(assignment)
            if any(event["which"] == "ceiling" for event in history.of("limit")):
                raise CeilingReached
            record = record_of(
                state.shot,
                assignment.number,
                assignment.round,
                assignment.item,
                history,
                _boundary(state, assignment),
            )
            if record.outcome in state.outcomes:
                record = replace(record, history=None)
            state.outcomes.add(record.outcome)
            before = state.wanted
            state.records.append(record)
            journal.add(record)
            watcher.finished(state.shot, record)
            if state not in queue and state.next() is not None:
                queue.appendleft(state)
            if state.wanted != before:
                watcher.planned(sum(s.wanted for s in states.values()))
        submit_more()
    return {shot.id: states[shot.id].records if shot.id in states else [] for shot in shots}


def _boundary(state: _State, assignment: _Assignment) -> str | None:
    return state.boundaries[assignment.item] if state.boundaries else None
