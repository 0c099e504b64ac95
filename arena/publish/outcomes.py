"""What a square of the matrix says: symbol, word, number and the docs' stance of some results. Pure.

The words are `site`'s only; verdicts and anomalies come from the results as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from arena.results import Result, Seen
from arena.words import Anomaly

Kind = Literal["pass", "fail", "some", "error", "unsupported", "missing"]
Stance = Literal["documents", "contradicts", "silent"]

#: Symbol and word of each anomaly, worst for the customer first: the first one found names a square.
SIGNS: Mapping[Anomaly, tuple[str, str]] = {
    "duplicated": ("✕", "twice"),
    "unapproved": ("▲", "unapproved"),
    "lost": ("○", "lost"),
    "run-lost": ("⊘", "run lost"),
    "approval-forgotten": ("◌", "approval forgotten"),
    "wrong-answer": ("△", "wrong answer"),
    "poisoned": ("■", "poisoned"),
    "hung": ("∞", "hung"),
    "crashed": ("◆", "crashed"),
    "unfinished": ("…", "unfinished"),
    "asked-again": ("⟳", "asked again"),
    "replayed": ("↻", "re-run"),
}
_ORDER: tuple[Anomaly, ...] = tuple(SIGNS)
STANCES: Mapping[Stance, str] = {
    "documents": "§ documented",
    "contradicts": "≠ contradicts docs",
    "silent": "docs are silent",
}
_SEVERE: tuple[Stance, ...] = ("contradicts", "silent", "documents")


@dataclass(frozen=True, slots=True)
class Square:
    """What one square shows.

    Attributes:
        kind: how it looks: good news is quiet, bad news solid, `some` means in some trials only.
        color: the family of the colour: the anomaly that names it, or the kind.
        symbol: a sign that is not a colour.
        word: what the provider saw, in a word.
        amount: that as a number, e.g. `2 effects`.
        number: the trials behind it.
        stance: what the docs say of the anomaly that names it; empty where nothing broke.
        also: the other anomalies that these results have.
        unjudged: results among them that have no verdict.
        result: the result that it rests on; None where nothing was run.
    """

    kind: Kind
    color: str
    symbol: str
    word: str
    amount: str = ""
    number: str = ""
    stance: Stance | Literal[""] = ""
    also: tuple[str, ...] = ()
    unjudged: int = 0
    result: Result | None = None

    @property
    def said(self) -> tuple[str, str, tuple[str, ...], str]:
        """What makes two squares the same for a reader."""
        return self.kind, self.word, self.also, self.stance


def square(results: Sequence[Result]) -> Square:
    """Return the square of some results: the worst of them, with its own numbers."""
    if not results:
        return Square("missing", "missing", "?", "not run")
    failing = [r for r in results if r.verdict == "FAIL"]
    unjudged = sum(r.verdict == "ERROR" for r in results)
    if failing:
        worst = min(failing, key=_rank)
        return _failed(worst, failing, unjudged)
    if unjudged:
        broken = next(r for r in results if r.verdict == "ERROR")
        return Square("error", "error", "!", "no verdict", unjudged=unjudged, result=broken)
    passing = [r for r in results if r.verdict == "PASS"]
    if not passing:
        return Square("unsupported", "unsupported", "–", "not supported", result=results[0])
    weakest = max(passing, key=lambda r: (r.trials.interval or (0.0, 1.0))[1])
    word, amount = _right(weakest)
    return Square("pass", "pass", "✓", word, amount, _numbers(weakest), result=weakest)


def _rank(result: Result) -> tuple[int, int]:
    return 0 if result.trials.k >= result.trials.n else 1, _ORDER.index(first_anomaly(result))


def first_anomaly(result: Result) -> Anomaly:
    """Return the anomaly that names a FAIL."""
    names = [found.name for found in result.anomalies]
    return min(names, key=_ORDER.index) if names else "unfinished"


def _failed(worst: Result, failing: Sequence[Result], unjudged: int) -> Square:
    name = first_anomaly(worst)
    symbol, word = SIGNS[name]
    counts = _shown(worst)
    amount = ""
    if name == "duplicated":
        most = max(counts.values(), default=2)
        amount = f"{most} effects"
        word = word if most == 2 else amount
    elif name == "lost":
        amount = "0 effects"
    elif name == "replayed":
        steps = sum(count - 1 for count in counts.values() if count > 1)
        word = f"{steps} step{'' if steps == 1 else 's'} re-run" if steps else word
    some = worst.trials.k < worst.trials.n
    others = {first_anomaly(r) for r in failing} - {name}
    stance: Stance = next((f.stance for f in worst.anomalies if f.name == name), "silent")
    return Square(
        "some" if some else "fail",
        name,
        "≈" if some else symbol,
        word,
        amount,
        _numbers(worst),
        stance,
        tuple(SIGNS[o][1] for o in sorted(others, key=_ORDER.index)),
        unjudged,
        worst,
    )


def _shown(result: Result) -> dict[str, int]:
    """Return the counts of the outcome that the verdict comes from."""
    seen = shown_outcome(result)
    return seen.counts if seen else {}


def shown_outcome(result: Result) -> Seen | None:
    """Return the outcome that shows a result's verdict; None without trials."""
    outcomes = result.trials.outcomes
    matching = [o for o in outcomes if o.verdict == result.verdict]
    if result.verdict == "FAIL" and result.anomalies:
        name = first_anomaly(result)
        matching = [o for o in matching if name in o.anomalies] or matching
    return next(iter(matching or outcomes), None)


def _right(result: Result) -> tuple[str, str]:
    counts = _shown(result)
    if counts and set(counts.values()) == {1}:
        return "once", "1 effect" if result.key is not None else "1 call each"
    return ("none", "0 effects") if not counts else ("holds", "")


def _numbers(result: Result) -> str:
    t = result.trials
    if not t.n:
        return ""
    parts = [f"{t.score} jobs"] if t.score else []
    if t.k:
        if t.k < t.n or not t.score:
            parts.append(f"{t.k} of {t.n}")
    else:
        high = (t.interval or (0.0, 1.0))[1]
        parts.append(f"{'' if t.score else f'0 of {t.n}, '}≤ {high:.0%}")
    return ", ".join(parts)


def stances(result: Result) -> tuple[tuple[Anomaly, Stance, str | None], ...]:
    """Return each anomaly of a result with the docs' stance and the id of the sentence, the gravest first."""
    found = sorted(result.anomalies, key=lambda f: (_SEVERE.index(f.stance), _ORDER.index(f.name)))
    return tuple((f.name, f.stance, f.promise) for f in found)
