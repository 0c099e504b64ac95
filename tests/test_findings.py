"""Every number in findings.md stands in the committed results of the cells that its finding links."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from arena.publish.collection import anchors
from arena.results import Result, published
from arena.scenario import find_scenarios

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\(evidence/([^/)]+)/([^/)]+)/([^/)]+)/([^/)#]+)\.md(?:#([^)]*))?\)")
_NUMBER = re.compile(r"(?<![\w.#])\d+(?:\.\d+)?(?![\w.]*\w)")


def _findings() -> dict[str, str]:
    text = (ROOT / "findings.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part for part in parts}


@cache
def _newest() -> dict[tuple[str, str, str, str], tuple[Result, ...]]:
    found: dict[tuple[str, str, str, str], tuple[Result, ...]] = {}
    for file in published(ROOT / "results").values():
        places = {(r.target, r.version, r.mode, r.scenario) for r in file.results}
        for place in places:
            found[place] = tuple(
                r for r in file.results if (r.target, r.version, r.mode, r.scenario) == place
            )
    return found


def _cells(text: str) -> list[Result]:
    cells: list[Result] = []
    for target, version, mode, scenario, anchor in _LINK.findall(text):
        results = _newest()[target, version, mode, scenario]
        by_point = anchors(results)
        chosen = [r for r in results if not anchor or by_point[r.point] == anchor]
        assert chosen, f"no cell stands at {target}/{version}/{mode}/{scenario}#{anchor}"
        cells.extend(chosen)
    return cells


def _numbers_of(cells: list[Result]) -> set[str]:
    numbers: set[str] = set()
    for cell in cells:
        trials = cell.trials
        numbers |= {
            str(n) for n in (trials.k, trials.n, trials.n - trials.k, trials.planned, cell.state_bytes)
        }
        numbers |= set(re.findall(r"\d+", trials.score or ""))
        numbers |= {f"{100 * bound:.0f}" for bound in trials.interval or ()}
        numbers |= {str(count) for seen in trials.outcomes for count in seen.counts.values()}
        numbers |= {str(n) for n in (cell.boundaries or {}).values()}
    return numbers


@pytest.mark.parametrize("title", _findings())
def test_a_findings_numbers_stand_in_the_results_it_links(title: str) -> None:
    text = _findings()[title]
    cells = _cells(text)
    assert cells, "a finding is tied to cells: link at least one evidence page"
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.partition("\n")[2])
    prose = re.sub(r"`[^`]*`|\"[^\"]*\"|https?://\S+", " ", prose)
    prose = re.sub(r"\b\d+\.\d+\.\d+\b", " ", prose)
    stray = set(_NUMBER.findall(prose)) - _numbers_of(cells)
    assert not stray, f"{sorted(stray)} do not stand in the linked cells"


def test_findings_are_numbered_in_order() -> None:
    numbers = [int(title.partition(".")[0]) for title in _findings()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_postgres_has_the_verdicts_of_sqlite_in_every_cell() -> None:
    """The eleventh finding."""

    def verdicts(mode: str) -> dict[tuple[str, str, str | None], str]:
        return {
            (r.scenario, r.point, r.key): r.verdict
            for (target, version, found, _), results in _newest().items()
            for r in results
            if (target, version, found) == ("langgraph", "1.2.24", mode)
        }

    postgres, sqlite = verdicts("graph-sync-postgres"), verdicts("graph-sync")
    assert len(postgres) > 100
    assert {cell: sqlite[cell] for cell in postgres} == postgres


def test_every_failing_cell_carries_a_stance_for_each_anomaly() -> None:
    failing = [
        r for file in published(ROOT / "results").values() for r in file.results if r.verdict == "FAIL"
    ]
    assert failing
    assert all(r.anomalies and all(found.stance for found in r.anomalies) for r in failing)


def test_every_published_scenario_is_one_that_is_there() -> None:
    names = find_scenarios()
    assert all(r.scenario in names for file in published(ROOT / "results").values() for r in file.results)
