"""Verify: what does not follow from a file's trial rows and witnesses is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena.adapters import load_adapter
from arena.cells import Wanted, select
from arena.journal import Record
from arena.results import ResultsFile, to_text
from arena.runner import record_of
from arena.scenario import find_scenarios
from arena.verdicts import FRESH, Sentences, cell_results
from arena.verify import verify_file
from harness.history import Event, History
from tests.histories import finishing, killed_after

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = find_scenarios()
(SHOT,) = select(
    Wanted(("controls",), ("kill-mid-tool",), ("outbox",), ("after-effect@rest",)),
    {"controls": load_adapter(ROOT / "adapters" / "controls")},
    SCENARIOS,
)
RUN = {
    "id": "run", "harness_commit": "unknown", "date": "2026-11-30", "platform": "p", "kernel": "k",
    "python": "3.11", "file_system": "ext4", "cores": 2, "jobs": 3, "load": (0.0, 0.0), "sandbox": "none",
    "leg_limit_s": 60.0, "ceiling_s": 7200.0, "controls": None, "audit": None,
}  # fmt: skip


def history(number: int, *, keyed: bool = True) -> History:
    """A trial's history; no two trials have the same one."""
    made = finishing(killed_after("k"), key="k" if keyed else "another").close()
    return History(tuple(Event(e.at + number, e.leg, e.kind, e.facts) for e in made))


def results(records: list[Record], planned: int = 5) -> dict[str, Any]:
    """Return a results file as data, as publishing would write it."""
    witnesses: dict[str, list[list[Any]]] = {}
    cells = cell_results(SHOT, records, planned, {"lock": "none"}, Sentences(), witnesses)
    file = ResultsFile.model_validate(
        {"schema": 1, "run": RUN, "results": [c.model_dump() for c in cells], "witnesses": witnesses}
    )
    data: dict[str, Any] = file.model_dump(mode="json", by_alias=True)
    assert to_text(file)
    return data


def trials(keyed: Callable[[int], bool], count: int, round_: int = 1, first: int = 0) -> list[Record]:
    return [record_of(SHOT, n, round_, 0, history(n, keyed=keyed(n))) for n in range(first, first + count)]


AGREEING = trials(lambda _: True, 5)
DIFFERING = trials(lambda n: n != 3, 5) + trials(lambda n: n % 10 != 0, FRESH, 2, 5)


def differences(data: dict[str, Any]) -> list[str]:
    return verify_file(ResultsFile.model_validate(data), SCENARIOS)


def cell(data: dict[str, Any], key: str = "none") -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in data["results"] if r["key"] == key)
    return found


def test_what_publishing_writes_follows_from_its_trials() -> None:
    assert differences(results(AGREEING)) == []
    assert differences(results(DIFFERING)) == []


def test_the_cells_are_what_the_trials_say() -> None:
    data = results(DIFFERING)
    assert (cell(data)["verdict"], cell(data)["trials"]["k"], cell(data)["trials"]["n"]) == ("FAIL", 100, 100)
    keyed = cell(data, "call-id")
    assert (keyed["verdict"], keyed["trials"]["k"], keyed["trials"]["n"]) == ("FAIL", 10, 100)


Forgery = Callable[[dict[str, Any]], object]


def forge(path: str, value: Any) -> Forgery:
    """Return a forgery that sets one field of the keyless cell."""

    def change(data: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        at: Any = cell(data)
        for name in parents:
            at = at[int(name) if name.isdigit() else name]
        at[int(last) if last.isdigit() else last] = value

    return change


def remove_witness(data: dict[str, Any]) -> None:
    data["witnesses"].pop(cell(data)["trials"]["outcomes"][0]["witness"])


def repeat_a_row(data: dict[str, Any]) -> None:
    rows = cell(data)["trials"]["rows"]
    rows[1] = rows[0]


def add_a_row(data: dict[str, Any]) -> None:
    rows = cell(data)["trials"]["rows"]
    rows.append(rows[0])


def drop_a_row(data: dict[str, Any]) -> None:
    cell(data)["trials"]["rows"].pop()


def drop_the_witnesses_row(data: dict[str, Any]) -> None:
    witness = cell(data)["trials"]["outcomes"][0]["witness"]
    for row in cell(data)["trials"]["rows"]:
        if witness.startswith(row[0]):
            row[0] = "f" * len(row[0])


def edit_a_witness(data: dict[str, Any]) -> None:
    witness = data["witnesses"][cell(data)["trials"]["outcomes"][0]["witness"]]
    witness[:] = [row for row in witness if row[2] != "recorded"]


def a_cell_twice(data: dict[str, Any]) -> None:
    data["results"].append(data["results"][0])


def call_it_unsupported(data: dict[str, Any]) -> None:
    cell(data)["verdict"] = "UNSUPPORTED"


def an_outcome_that_is_not_listed(data: dict[str, Any]) -> None:
    cell(data)["trials"]["rows"][0][1] = 9


def a_scenario_of_no_name(data: dict[str, Any]) -> None:
    cell(data)["scenario"] = "wished"


@pytest.mark.parametrize(
    "forgery",
    [
        forge("verdict", "PASS"),
        forge("verdict", "ERROR"),
        forge("anomalies", []),
        forge("anomalies", [{"name": "lost", "stance": "silent", "promise": None}]),
        forge("trials.outcomes.0.verdict", "PASS"),
        forge("trials.outcomes.0.anomalies", []),
        forge("trials.outcomes.0.counts", {'charge_card{"amount":42,"order":"order-1"}': 1}),
        forge("trials.k", 0),
        forge("trials.n", 20),
        forge("trials.passed", 5),
        forge("trials.failed", 4),
        forge("trials.errors", 1),
        forge("trials.replaced", 1),
        forge("trials.planned", 20),
        forge("trials.interval", [0.0, 0.1]),
        forge("trials.interval", None),
        forge("trials.differing", True),
        forge("trials.score", "8 of 8"),
        forge("key", "call-id"),
        remove_witness,
        repeat_a_row,
        add_a_row,
        drop_a_row,
        drop_the_witnesses_row,
        edit_a_witness,
        a_cell_twice,
        call_it_unsupported,
        an_outcome_that_is_not_listed,
        a_scenario_of_no_name,
    ],
    ids=lambda f: f.__name__,
)
def test_a_forgery_is_found(forgery: Forgery) -> None:
    data = results(AGREEING)
    forgery(data)
    assert differences(data)


def test_fresh_trials_that_are_left_out_are_found() -> None:
    data = results(DIFFERING)
    trials = cell(data, "call-id")["trials"]
    trials["rows"] = [row for row in trials["rows"] if row[3] == 1]
    assert differences(data)


def test_a_worse_trial_that_is_called_a_better_one_is_found() -> None:
    data = results(DIFFERING)
    keyed = cell(data, "call-id")["trials"]
    worse = next(row for row in keyed["rows"] if row[1] == 0)
    worse[1] = 1
    assert differences(data)


def test_a_difference_names_its_cell() -> None:
    data = results(AGREEING)
    forge("verdict", "PASS")(data)
    (text,) = differences(data)
    assert "controls@" in text
    assert "outbox kill-mid-tool effect:charge_card#1.after@rest key=none" in text
    assert "'PASS'" in text
