"""From the trials of a shot to the results of its cells: repeats, intervals, stances. Pure.

The rules are design §6: the verdict is the worst one seen; cells whose trials differ are judged by fresh
trials; at most two ERROR trials of a cell are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from arena.adapters import KeyUse, Promise
from arena.cells import Shot, coordinates_id
from arena.checkers import repeats_told_apart
from arena.journal import Judged, Record
from arena.results import DIGITS, ROW_DIGITS, Found, Leg, Result, Seen, Sentence, Trials
from arena.statistics import METHOD, interval
from arena.words import ANOMALIES, Anomaly, Verdict
from harness.history import history_from_json
from harness.model import POLICY

#: Fresh trials for a cell whose trials differ.
FRESH = 100
#: ERROR trials that are replaced before a cell is an ERROR.
REPLACED = 2
_WORST: tuple[Verdict, ...] = ("ERROR", "FAIL", "PASS", "UNSUPPORTED")


@dataclass
class Sentences:
    """Recipes and promises that results refer to, by id."""

    recipes: dict[str, Sentence] = field(default_factory=dict)
    promises: dict[str, Sentence] = field(default_factory=dict)

    def promise(self, promise: Promise) -> str:
        """Return the id of a promise's sentence, and keep the sentence."""
        sentence = Sentence(quote=promise.quote, url=promise.url, checked=promise.checked.isoformat())
        key = coordinates_id(sentence.model_dump())
        self.promises[key] = sentence
        return key

    def recipe(self, shot: Shot) -> str | None:
        """Return the id of the recipe of a shot's mode, and keep its sentence."""
        recipe = shot.adapter.modes[shot.mode].recipe
        if recipe is None:
            return None
        sentence = Sentence(
            quote=recipe.quote, url=recipe.url, checked=recipe.checked.isoformat(), call=recipe.call
        )
        key = coordinates_id(sentence.model_dump())
        self.recipes[key] = sentence
        return key


def planned_trials(shot: Shot, trials: int) -> int:
    """Return the number of trials of a shot: `trials`, rounded up to a multiple of the scenario's items."""
    items = len(shot.scenario.items)
    return -(-trials // items) * items


def differs(records: Sequence[Record]) -> bool:
    """Return whether trials differ in verdict or anomalies, for some use of the key; errors aside."""
    seen: dict[str, set[tuple[Verdict, tuple[Anomaly, ...]]]] = {}
    for record in records:
        for key, judged in record.judged.items():
            if judged.verdict != "ERROR":
                seen.setdefault(key, set()).add((judged.verdict, judged.anomalies))
    return any(len(kinds) > 1 for kinds in seen.values())


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the worst of some verdicts: ERROR, then FAIL, then PASS."""
    return min(verdicts, key=_WORST.index)


@dataclass(frozen=True)
class Repeats:
    """What follows from the trials of one cell: computed by publishing, and again by `verify`."""

    verdict: Verdict
    anomalies: tuple[Anomaly, ...]
    passed: int
    failed: int
    errors: int
    replaced: int
    differing: bool
    k: int
    n: int
    score: str | None


def repeats(
    rows: Sequence[tuple[Verdict, tuple[Anomaly, ...], int, int]],
    planned: int,
    items: int,
    *,
    scored: bool,
) -> Repeats:
    """Return what follows from a cell's trials. A cell with fewer judged trials than planned is an ERROR.

    Args:
        rows: (verdict, anomalies, item, round) of every trial. Trials of round 0 explore: they count for the
            verdict, not for the interval, since each of them struck somewhere else.
        planned: trials planned in the first round.
        items: the scenario's number of items.
        scored: whether the cell has a score.
    """
    good = [row for row in rows if row[0] != "ERROR"]
    error_count = len(rows) - len(good)
    replaced = min(error_count, REPLACED)
    errors = error_count - replaced
    judged = [row for row in good if row[3] > 0]
    fresh = [row for row in judged if row[3] == 2]
    differing = len({(row[0], row[1]) for row in judged}) > 1
    about = fresh or judged
    missing = len(fresh) < FRESH if fresh or differing else len(judged) < planned
    verdict: Verdict = "ERROR" if errors or missing or not good else worst([row[0] for row in good])
    found = {anomaly for row in good for anomaly in row[1]}
    passing = {row[2] for row in good} - {row[2] for row in good if row[0] != "PASS"}
    return Repeats(
        verdict,
        tuple(a for a in ANOMALIES if a in found) if verdict == "FAIL" else (),
        sum(row[0] == "PASS" for row in good),
        sum(row[0] == "FAIL" for row in good),
        errors if good else error_count,
        replaced if good else 0,
        differing,
        sum(row[0] == "FAIL" for row in about),
        len(about),
        f"{len(passing)} of {items}" if scored and good and not errors else None,
    )


def cell_results(
    shot: Shot,
    records: Sequence[Record],
    planned: int,
    hashes: Mapping[str, str],
    sentences: Sentences,
    witnesses: dict[str, list[list[Any]]],
) -> tuple[Result, ...]:
    """Return the results of a shot's cells, and put their witnesses and sentences where they are told."""
    histories = {r.outcome: r for r in sorted(records, key=lambda r: r.number) if r.history is not None}
    return tuple(
        _cell(shot, key, records, histories, planned, hashes, sentences, witnesses) for key in shot.keys
    )


def _cell(
    shot: Shot,
    key: KeyUse | None,
    records: Sequence[Record],
    histories: Mapping[str, Record],
    planned: int,
    hashes: Mapping[str, str],
    sentences: Sentences,
    witnesses: dict[str, list[list[Any]]],
) -> Result:
    lacking = shot.lacks(key)
    if lacking is not None:
        return _unsupported(shot, key, hashes, sentences)
    judged = [(record, record.judged[key or "calls"]) for record in records]
    what = repeats(
        [(j.verdict, j.anomalies, r.item, r.round) for r, j in judged],
        planned,
        len(shot.scenario.items),
        scored=shot.scenario.scored,
    )
    groups: dict[str, list[tuple[Record, Judged]]] = {}
    for record, j in judged:
        groups.setdefault(_kind(record, j), []).append((record, j))
    ordered = sorted(groups.values(), key=lambda g: (_WORST.index(g[0][1].verdict), -len(g)))
    outcomes, index = [], {}
    for number, group in enumerate(ordered):
        record, j = group[0]
        witness = histories[record.outcome]
        assert witness.history is not None
        witnesses[witness.digest[:DIGITS]] = witness.history
        index[_kind(record, j)] = number
        outcomes.append(
            Seen(
                verdict=j.verdict,
                anomalies=j.anomalies,
                exits=record.exits,
                counts=j.counts,
                checks=record.checks,
                reason=j.reason,
                witness=witness.digest[:DIGITS],
            )
        )
    rows = tuple(
        (record.digest[:ROW_DIGITS], index[_kind(record, j)], record.item, record.round)
        for record, j in sorted(judged, key=lambda pair: pair[0].number)
    )
    shown = next((o for o in outcomes if o.verdict == what.verdict), outcomes[0])
    history = witnesses[shown.witness]
    evidence = evidence_of(history, shown.counts)
    repeated = repeats_told_apart(history_from_json(history))
    if any(repeated.values()):
        evidence["repeats"] = repeated
    found = None
    if shot.scenario.explores:
        explored = sorted((r for r, _ in judged if r.round == 0 and not r.is_error), key=lambda r: r.item)
        evidence["histogram"] = {str(r.boundary): _in_words(r.judged[key or "calls"]) for r in explored}
        evidence["repeated"] = next((r.boundary for r, _ in judged if r.round > 0), None)
        listed = {r.item for r, _ in judged if r.round == 0}
        found = {"found": max(listed, default=-1) + 1, "reached": len(explored)}
    legs = _legs(history)
    return Result(
        id=shot.cell_id(key),
        scenario=shot.scenario.name,
        target=shot.adapter.id,
        version=shot.version,
        mode=shot.mode,
        kill_point=shot.case.name,
        point=shot.point,
        key=_shown_key(key, records),
        verdict=what.verdict,
        detail=_detail(what, shown),
        anomalies=tuple(_found(shot, key, anomaly, sentences) for anomaly in what.anomalies),
        evidence=evidence,
        trials=Trials(
            planned=planned,
            passed=what.passed,
            failed=what.failed,
            errors=what.errors,
            replaced=what.replaced,
            differing=what.differing,
            k=what.k,
            n=what.n,
            interval=interval(what.k, what.n) if what.n else None,
            method=METHOD,
            score=what.score,
            outcomes=tuple(outcomes),
            rows=rows,
        ),
        legs=legs,
        boundaries=found,
        barrier=tuple(e[3]["reason"] for e in history if e[2] == "barrier"),
        mode_read=next(
            ({"asked": e[3]["asked"], "found": e[3]["found"]} for e in history if e[2] == "mode-read"), None
        ),
        state_bytes=legs[0].state_bytes if legs else None,
        recipe=sentences.recipe(shot),
        workload=shot.scenario.items[0].workload.id,
        policy=POLICY,
        hashes={name: value[:DIGITS] for name, value in hashes.items()},
        reproduce=shot.reproduce,
    )


def _in_words(judged: Judged) -> str:
    return ", ".join(judged.anomalies) or judged.verdict


def _kind(record: Record, judged: Judged) -> str:
    return f"{judged.kind}{record.exits}{record.checks}"


def failed_results(
    shot: Shot, reason: str, planned: int, hashes: Mapping[str, str], sentences: Sentences
) -> tuple[Result, ...]:
    """Return the results of a shot that could not be run at all: an ERROR each, never a smaller matrix."""
    return tuple(
        _unsupported(shot, key, hashes, sentences)
        if shot.lacks(key) is not None
        else _without_trials(shot, key, "ERROR", f"could not be run: {reason}", planned, hashes, sentences)
        for key in shot.keys
    )


def _unsupported(shot: Shot, key: KeyUse | None, hashes: Mapping[str, str], sentences: Sentences) -> Result:
    lacking = shot.lacks(key)
    assert lacking is not None
    why = {"reason": lacking.reason, "url": lacking.url, "checked": lacking.checked.isoformat()}
    return _without_trials(shot, key, "UNSUPPORTED", lacking.reason, 0, hashes, sentences, why)


def _without_trials(
    shot: Shot,
    key: KeyUse | None,
    verdict: Verdict,
    detail: str,
    planned: int,
    hashes: Mapping[str, str],
    sentences: Sentences,
    unsupported: dict[str, str] | None = None,
) -> Result:
    return Result(
        id=shot.cell_id(key),
        scenario=shot.scenario.name,
        target=shot.adapter.id,
        version=shot.version,
        mode=shot.mode,
        kill_point=shot.case.name,
        point=shot.point,
        key=_shown_key(key, ()),
        verdict=verdict,
        detail=detail,
        anomalies=(),
        evidence={},
        trials=Trials(
            planned=planned,
            passed=0,
            failed=0,
            errors=0,
            replaced=0,
            differing=False,
            k=0,
            n=0,
            interval=None,
            method=METHOD,
            outcomes=(),
            rows=(),
        ),
        legs=(),
        mode_read=None,
        state_bytes=None,
        recipe=sentences.recipe(shot),
        workload=shot.scenario.items[0].workload.id,
        policy=POLICY,
        unsupported=unsupported,
        hashes={name: value[:DIGITS] for name, value in hashes.items()},
        reproduce=shot.reproduce,
    )


def _shown_key(key: KeyUse | None, records: Sequence[Record]) -> Literal["none", "call-id", "other"] | None:
    kinds = {record.key_kind for record in records if record.key_kind is not None}
    if key is None or key == "none":
        return key
    return "call-id" if kinds <= {"call-id"} else "other"


def _found(shot: Shot, key: KeyUse | None, anomaly: Anomaly, sentences: Sentences) -> Found:
    promise = shot.adapter.promise(anomaly, shot.version, shot.mode, shot.scenario.name, shot.point, key)
    if promise is None:
        return Found(name=anomaly, stance="silent")
    return Found(name=anomaly, stance=promise.stance, promise=sentences.promise(promise))


def _detail(what: Repeats, shown: Seen) -> str:
    counts = ", ".join(f"{name.partition('{')[0]} {count} x" for name, count in sorted(shown.counts.items()))
    ends = f"legs: {', '.join(shown.exits)}" if shown.exits else "no leg ended"
    if what.verdict == "ERROR":
        return f"could not be judged: {shown.reason}"
    if what.verdict == "PASS":
        return f"{counts}; {ends}"
    said = ", ".join(what.anomalies)
    return f"{said} in {what.k} of {what.n} trials; {counts}; {ends}"


def evidence_of(history: list[list[Any]], counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the measured values of a witness, in the fields of the first results (seeds, decisions §7)."""
    evidence: dict[str, Any] = {}
    effects = {name: count for name, count in counts.items()}
    if effects:
        evidence["effects"] = effects
    calls = [
        {
            "effect": facts["name"],
            **({"key": facts["key"]} if "key" in facts else {}),
            "pid": facts["pid"],
            "phase": leg,
        }
        for _, leg, kind, facts in history
        if kind == "arrived" and facts["what"] == "effect"
    ]
    if calls:
        evidence["calls"] = calls
    kill: dict[str, Any] = {}
    for _, leg, kind, facts in history:
        if kind == "struck" and "group" not in kill:
            kill["group"] = facts["group"]
            kill["leg"] = leg
            if "rested" in facts:
                kill["rested"], kill["rest_s"] = facts["rested"], facts["rest_s"]
        if kind == "checked" and "holders" in facts:
            kill.setdefault("holders", facts["holders"])
        if kind == "checked" and facts["check"] == "killed":
            kill.setdefault("status", f"{facts.get('how')} {facts.get('status')}")
        if kind == "checked" and "seconds" in facts and facts["check"] == "closed":
            kill.setdefault("closed_after_s", facts["seconds"])
        if kind == "leg-started" and leg == 0:
            kill["pid"] = facts["pid"]
    if "group" in kill:
        evidence["kill"] = kill
    ends = [(leg, facts) for _, leg, kind, facts in history if kind == "leg-ended" and leg]
    if ends:
        _, last = ends[-1]
        hung = any(kind == "limit" and leg == ends[-1][0] for _, leg, kind, _ in history)
        status = last["status"] if last["how"] == "exited" else -last["status"]
        evidence["resume_returncode"] = None if hung else status
        if "stderr" in last:
            # the whole tail is in the witness; its end says what went wrong
            evidence["stderr"] = "\n".join(last["stderr"].splitlines()[-2:])[-300:]
    limits = [facts for _, _, kind, facts in history if kind == "limit"]
    if limits:
        evidence["limit"] = limits[-1]
    return evidence


def _legs(history: list[list[Any]]) -> tuple[Leg, ...]:
    legs: dict[int, dict[str, Any]] = {}
    for _, leg, kind, facts in history:
        if leg is None:
            continue
        if kind == "leg-started":
            legs[leg] = {
                "word": facts["word"],
                "version": facts.get("version"),
                "start": facts["start"],
                "hash_seed": facts["hash_seed"],
                "why_cold": facts.get("why_cold"),
            }
        elif kind == "limit":
            legs[leg]["limit"] = facts["which"]
        elif kind == "leg-ended":
            legs[leg]["cpu_s"] = facts["cpu_s"]
            legs[leg]["state_bytes"] = facts.get("state_bytes")
    return tuple(Leg(**facts) for _, facts in sorted(legs.items()))
