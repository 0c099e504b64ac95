"""Cells: what is asked for is found, and what does not exist is named."""

from pathlib import Path

import pytest

from arena.adapters import find_adapters
from arena.cells import SelectionError, Shot, Wanted, select
from arena.scenario import find_scenarios

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = find_adapters(ROOT / "adapters")
SCENARIOS = find_scenarios()


def chosen(
    *targets: str, scenarios: tuple[str, ...] = (), modes: tuple[str, ...] = (), at: str = ""
) -> tuple[Shot, ...]:
    return select(Wanted(targets, scenarios, modes, (at,) if at else ()), ADAPTERS, SCENARIOS)


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (Wanted(("langgrpah",)), "langgrpah"),
        (Wanted(("langgraph@9.9",)), "9.9"),
        (Wanted(("langgraph",), ("kill-mid-tol",)), "kill-mid-tol"),
        (Wanted(("langgraph",), (), ("graph-sinc",)), "graph-sinc"),
        (Wanted(("langgraph",), (), (), ("effect:charge_card#7.after",)), "effect:charge_card#7.after"),
        (Wanted(("controls",), (), ("graph-sync",)), "graph-sync"),
        (
            Wanted(
                ("controls", "nobody"),
            ),
            "nobody",
        ),
        (Wanted(("langgraph",), (), (), ("after-effect@never",)), "after-effect@never"),
    ],
)
def test_what_does_not_exist_is_named_with_what_there_is(wanted: Wanted, named: str) -> None:
    with pytest.raises(SelectionError) as error:
        select(wanted, ADAPTERS, SCENARIOS)
    assert repr(named) in str(error.value)
    assert "there are" in str(error.value) or "lists" in str(error.value)


def test_without_targets_every_framework_and_no_control_runs() -> None:
    found = {shot.adapter.id for shot in chosen()}
    assert found == {name for name, adapter in ADAPTERS.items() if not adapter.control}


def test_a_target_without_version_is_its_newest() -> None:
    newest = ADAPTERS["langgraph"].versions[0].version
    assert {shot.version for shot in chosen("langgraph", scenarios=("kill-mid-tool",))} == {newest}


def test_all_versions_are_those_of_the_adapter() -> None:
    found = {shot.version for shot in chosen("langgraph@all", scenarios=("kill-mid-tool",))}
    assert found == {v.version for v in ADAPTERS["langgraph"].versions}


@pytest.mark.parametrize(
    ("at", "points"),
    [
        ("after-effect", {"effect:charge_card#1.after@rest", "effect:charge_card#1.after@once"}),
        ("after-effect@rest", {"effect:charge_card#1.after@rest"}),
        ("effect:charge_card#1.before@once", {"effect:charge_card#1.before@once"}),
        (
            "effect:charge_card#1.before",
            {"effect:charge_card#1.before@rest", "effect:charge_card#1.before@once"},
        ),
    ],
)
def test_a_point_is_chosen_by_name_or_text_with_or_without_timing(at: str, points: set[str]) -> None:
    found = chosen("langgraph", scenarios=("kill-mid-tool",), modes=("graph-sync",), at=at)
    assert {shot.point for shot in found} == points


def test_no_two_cells_of_the_matrix_share_an_id() -> None:
    shots = chosen(*(f"{name}@all" for name in ADAPTERS))
    assert len({shot.id for shot in shots}) == len(shots)
    cells = [shot.cell_id(key) for shot in shots for key in shot.keys]
    assert len(set(cells)) == len(cells)


def test_the_command_that_reproduces_a_shot_selects_it_alone() -> None:
    for shot in chosen("langgraph@all", scenarios=("kill-mid-tool", "durable-state")):
        words = shot.reproduce.replace("'", "").split()
        assert words[:2] == ["plugpull", "run"]
        options = dict(zip(words[3::2], words[4::2], strict=True))
        found = chosen(
            words[2], scenarios=(options["--scenario"],), modes=(options["--mode"],), at=options["--at"]
        )
        assert [s.id for s in found] == [shot.id]


def test_the_selection_is_stable() -> None:
    assert [s.id for s in chosen()] == [s.id for s in chosen()]


def test_a_cell_needs_a_resume_unless_its_scenario_makes_none_or_only_after_a_failure() -> None:
    without = {
        shot.scenario.name
        for shot in chosen("langgraph@all")
        for key in shot.keys
        if "resume" not in shot.needs(key)
    }
    assert without == {"start-again", "lost-answer"}
