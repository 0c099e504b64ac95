"""Repeats: from the trials of a cell to its verdict. There is no verdict "flaky"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.verdicts import FRESH, Repeats, repeats, worst
from arena.words import Anomaly, Verdict

Row = tuple[Verdict, tuple[Anomaly, ...], int, int]
PASS: Row = ("PASS", (), 0, 1)
FAIL: Row = ("FAIL", ("duplicated",), 0, 1)
LOST: Row = ("FAIL", ("lost",), 0, 1)
ERROR: Row = ("ERROR", (), 0, 1)


def fresh(row: Row) -> Row:
    return (row[0], row[1], row[2], 2)


def of(rows: list[Row], planned: int = 5, items: int = 1, *, scored: bool = False) -> Repeats:
    return repeats(rows, planned, items, scored=scored)


def test_trials_that_all_pass_are_a_pass() -> None:
    found = of([PASS] * 5)
    assert (found.verdict, found.anomalies, found.k, found.n) == ("PASS", (), 0, 5)
    assert not found.differing


def test_trials_that_all_fail_are_a_fail_with_their_anomalies() -> None:
    found = of([FAIL] * 5)
    assert (found.verdict, found.anomalies, found.k, found.n) == ("FAIL", ("duplicated",), 5, 5)


def test_trials_that_differ_are_judged_by_fresh_ones() -> None:
    rows = [PASS] * 4 + [FAIL] + [fresh(PASS)] * 97 + [fresh(FAIL)] * 3
    found = of(rows)
    assert (found.verdict, found.k, found.n, found.differing) == ("FAIL", 3, FRESH, True)
    assert (found.passed, found.failed) == (101, 4)


def test_the_worst_seen_stays_even_if_every_fresh_trial_passes() -> None:
    found = of([PASS] * 4 + [FAIL] + [fresh(PASS)] * FRESH)
    assert (found.verdict, found.anomalies, found.k, found.n) == ("FAIL", ("duplicated",), 0, FRESH)


def test_anomalies_are_those_of_all_trials() -> None:
    assert of([LOST] + [FAIL] * 4 + [fresh(FAIL)] * FRESH).anomalies == ("duplicated", "lost")


def test_too_few_fresh_trials_are_an_error() -> None:
    assert of([PASS] * 4 + [FAIL] + [fresh(PASS)] * (FRESH - 1)).verdict == "ERROR"


def test_trials_that_differ_without_any_fresh_one_are_not_published_as_they_are() -> None:
    # `differing` without fresh trials cannot come from a complete run
    found = of([PASS] * 4 + [FAIL])
    assert found.differing
    assert found.verdict == "ERROR"


@pytest.mark.parametrize("errors", [1, 2])
def test_at_most_two_errors_are_replaced(errors: int) -> None:
    found = of([ERROR] * errors + [PASS] * 5)
    assert (found.verdict, found.replaced, found.errors, found.n) == ("PASS", errors, 0, 5)


def test_a_third_error_makes_the_cell_an_error() -> None:
    found = of([ERROR] * 3 + [PASS] * 5)
    assert (found.verdict, found.replaced, found.errors) == ("ERROR", 2, 1)


def test_a_third_error_makes_a_failing_cell_an_error_too() -> None:
    found = of([ERROR] * 3 + [FAIL] * 5)
    assert (found.verdict, found.anomalies) == ("ERROR", ())


def test_an_error_that_was_not_replaced_is_an_error() -> None:
    assert of([ERROR] + [PASS] * 4).verdict == "ERROR"


def test_missing_trials_are_an_error() -> None:
    assert of([PASS] * 4).verdict == "ERROR"
    assert of([]).verdict == "ERROR"


def test_only_errors_are_an_error() -> None:
    found = of([ERROR] * 2)
    assert (found.verdict, found.errors, found.replaced, found.n) == ("ERROR", 2, 0, 0)


def test_the_score_counts_items_of_which_every_trial_passed() -> None:
    rows: list[Row] = [("PASS", (), n, 1) for n in range(8)]
    rows.extend(("PASS", (), n, 1) for n in range(7))
    rows.append(("FAIL", ("replayed",), 7, 1))
    rows.extend(("PASS", (), n % 8, 2) for n in range(104))
    assert of(rows, 16, 8, scored=True).score == "7 of 8"


def test_an_item_without_a_trial_is_no_point_in_the_score() -> None:
    rows: list[Row] = [("PASS", (), 0, 1)] * 8
    assert of(rows, 8, 8, scored=True).score == "1 of 8"


def test_a_cell_that_is_an_error_has_no_score() -> None:
    assert of([ERROR] * 3 + [PASS] * 5, scored=True).score is None


def test_the_worst_verdict_is_error_then_fail_then_pass() -> None:
    assert worst(["PASS", "FAIL", "ERROR"]) == "ERROR"
    assert worst(["PASS", "FAIL"]) == "FAIL"
    assert worst(["PASS"]) == "PASS"


rows_of_trials = st.lists(
    st.sampled_from((PASS, FAIL, LOST, ERROR, fresh(PASS), fresh(FAIL), fresh(ERROR))), max_size=12
)


@given(rows_of_trials, st.integers(1, 6))
def test_a_pass_has_seen_nothing_but_passes_and_replaced_errors(rows: list[Row], planned: int) -> None:
    found = of(rows, planned)
    if found.verdict == "PASS":
        assert {row[0] for row in rows} <= {"PASS", "ERROR"}
        assert sum(row[0] == "PASS" for row in rows) >= planned
        assert sum(row[0] == "ERROR" for row in rows) <= 2


@given(rows_of_trials, st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(rows: list[Row], planned: int, random: object) -> None:
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert of(mixed, planned) == of(rows, planned)


@given(rows_of_trials, st.integers(1, 6))
def test_every_trial_is_accounted_for(rows: list[Row], planned: int) -> None:
    found = of(rows, planned)
    assert found.passed + found.failed + found.errors + found.replaced == len(rows)
    assert 0 <= found.k <= found.n <= len(rows)
