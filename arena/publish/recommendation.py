"""A recommendation per framework: the mode and use of the key with the fewest failures. Pure.

The rule, which the site states in these words: of the newest version's modes, each with and without a key, the
pair with the fewest cells that FAIL; among equals, the one with the most cells that PASS, then the one whose
failing cells failed in the smallest share of their trials, then the one without a key, then the adapter's order.
Cells without a verdict and cells that are not supported are counted as neither. A use of the key without any
judged cell of its own is no candidate. Frameworks are never compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from arena.publish.collection import Collection, use
from arena.results import Result, Sentence

RULE = (
    "Of the newest version's modes, each with and without a key: the pair with the fewest cells that FAIL. Among "
    "equals, the one with the most cells that PASS; then the one whose failing cells failed in the smallest share "
    "of their trials; then the one without a key; then the order of the framework's own list. Cells without a "
    "verdict, and cells that are not supported, count as neither. Frameworks are not compared."
)


@dataclass(frozen=True)
class Recommendation:
    """A framework's mode and use of the key, and the cells that it rests on.

    Attributes:
        target: the framework.
        version: its newest version with results.
        mode: the mode.
        key: `none`, `with`, or None where no cell has a key as a dimension.
        recipe: the call that resumes, with its sentence; None where the results name none.
        passing, failing, unjudged, unsupported: the cells.
    """

    target: str
    version: str
    mode: str
    key: str | None
    recipe: Sentence | None
    passing: tuple[Result, ...]
    failing: tuple[Result, ...]
    unjudged: tuple[Result, ...]
    unsupported: tuple[Result, ...]

    @property
    def judged(self) -> int:
        """Cells with a verdict."""
        return len(self.passing) + len(self.failing)

    @property
    def key_words(self) -> str:
        """The use of the key in words."""
        return {"none": "without a key", "with": "with a key"}.get(self.key or "", "")

    @property
    def highest(self) -> float:
        """The highest upper bound of the passing cells: how often one of them may still fail."""
        return max((r.trials.interval[1] for r in self.passing if r.trials.interval), default=1.0)


def recommend(collection: Collection, target: str) -> Recommendation | None:
    """Return a framework's recommendation, or None where no cell has a verdict."""
    version = collection.newest(target)
    candidates: list[Recommendation] = []
    for mode in collection.modes(target, version):
        results = collection.results(target, version, mode)
        judged_uses = {use(r) for r in results if r.verdict in ("PASS", "FAIL")}
        keys: list[str | None] = [u for u in ("none", "with") if u in judged_uses] or (
            [None] if None in judged_uses else []
        )
        for key in keys:
            mine = tuple(r for r in results if use(r) in (key, None))
            candidates.append(_candidate(collection, target, version, mode, key, mine))
    return min(candidates, key=_order, default=None)


def _order(candidate: Recommendation) -> tuple[float, ...]:
    share = sum(r.trials.k / r.trials.n for r in candidate.failing if r.trials.n)
    return len(candidate.failing), -len(candidate.passing), share, candidate.key == "with"


def _candidate(
    collection: Collection, target: str, version: str, mode: str, key: str | None, results: tuple[Result, ...]
) -> Recommendation:
    def having(verdict: str) -> tuple[Result, ...]:
        return tuple(r for r in results if r.verdict == verdict)

    return Recommendation(
        target,
        version,
        mode,
        key,
        recipe_of(collection, results),
        having("PASS"),
        having("FAIL"),
        having("ERROR"),
        having("UNSUPPORTED"),
    )


def recipe_of(collection: Collection, results: tuple[Result, ...]) -> Sentence | None:
    """Return the recipe that results were run with."""
    for result in results:
        sheet = collection.sheet(result.target, result.version, result.mode, result.scenario)
        if sheet is not None and result.recipe in sheet.source.file.recipes:
            return sheet.source.file.recipes[result.recipe]
    return None
