"""Derives every verdict of a results file again, from its trial rows and its witnesses.

Consistency only: a file whose author invented the witnesses too would pass. Pure; knows no adapter.
"""

from __future__ import annotations

from collections.abc import Mapping

from arena.checkers import call_counts, effect_counts, judge
from arena.results import Result, ResultsFile, Seen, witness_digest
from arena.scenario import Scenario, Trial
from arena.statistics import interval
from arena.verdicts import repeats
from harness.history import history_from_json


def verify_file(file: ResultsFile, scenarios: Mapping[str, Scenario]) -> list[str]:
    """Return what does not follow, a sentence each; an empty list when everything does."""
    wrong: list[str] = []
    for digest, history in file.witnesses.items():
        if not digest.startswith(witness_digest(history)):
            wrong.append(f"witnesses.{digest[:12]}: its history has another digest")
    seen: set[str] = set()
    for result in file.results:
        if result.id in seen:
            wrong.append(f"{_where(result)}: the cell is there twice")
        seen.add(result.id)
        scenario = scenarios.get(result.scenario)
        if scenario is None:
            wrong.append(f"{_where(result)}: this plugpull has no scenario of that name")
        elif result.verdict == "UNSUPPORTED":
            if result.unsupported is None or result.trials.rows:
                wrong.append(f"{_where(result)}: UNSUPPORTED needs a reason and has no trials")
        else:
            wrong.extend(f"{_where(result)}: {text}" for text in _verify(result, scenario, file))
    return wrong


def _where(result: Result) -> str:
    return f"{result.target}@{result.version} {result.mode} {result.scenario} {result.point} key={result.key}"


def _verify(result: Result, scenario: Scenario, file: ResultsFile) -> list[str]:
    wrong: list[str] = []
    trials = result.trials
    for number, outcome in enumerate(trials.outcomes):
        wrong.extend(_verify_outcome(result, scenario, number, outcome, file))
    if any(not 0 <= row[1] < len(trials.outcomes) for row in trials.rows):
        return [*wrong, "a trial's row names an outcome that is not listed"]
    if len({row[0] for row in trials.rows}) != len(trials.rows):
        wrong.append("two trials have the same history")
    rows = [
        (trials.outcomes[outcome].verdict, trials.outcomes[outcome].anomalies, item, round_)
        for _, outcome, item, round_ in trials.rows
    ]
    again = repeats(rows, trials.planned, len(scenario.items), scored=scenario.scored)
    stated = {
        "verdict": result.verdict,
        "anomalies": tuple(found.name for found in result.anomalies),
        "passed": trials.passed,
        "failed": trials.failed,
        "errors": trials.errors,
        "replaced": trials.replaced,
        "differing": trials.differing,
        "k": trials.k,
        "n": trials.n,
        "score": trials.score,
    }
    for name, value in stated.items():
        if getattr(again, name) != value:
            wrong.append(f"{name}: stated {value!r}, from the trials follows {getattr(again, name)!r}")
    expected = interval(again.k, again.n) if again.n else None
    if trials.interval != expected:
        wrong.append(f"interval: stated {trials.interval}, from the trials follows {expected}")
    return wrong


def _verify_outcome(
    result: Result, scenario: Scenario, number: int, outcome: Seen, file: ResultsFile
) -> list[str]:
    rows = file.witnesses.get(outcome.witness)
    if rows is None:
        return [f"outcome {number}: its witness {outcome.witness[:12]} is missing"]
    item = next(
        (r[2] for r in result.trials.rows if outcome.witness[: len(r[0])] == r[0] and r[1] == number), None
    )
    if item is None or not (scenario.explores or 0 <= item < len(scenario.items)):
        return [f"outcome {number}: no trial of the cell has the witness's history"]
    history = history_from_json(rows)
    trial = Trial(scenario.item(item), keyed=result.key in ("call-id", "other"))
    judged = judge(history, scenario, trial)
    wrong = []
    if (judged.verdict, judged.anomalies) != (outcome.verdict, outcome.anomalies):
        wrong.append(
            f"outcome {number}: stated {outcome.verdict} {list(outcome.anomalies)}, "
            f"from its witness follows {judged.verdict} {list(judged.anomalies)}"
        )
    counts = {**effect_counts(history, trial), **call_counts(history)}
    if judged.verdict != "ERROR" and counts != outcome.counts:
        wrong.append(f"outcome {number}: stated counts {outcome.counts}, its witness shows {counts}")
    return wrong
