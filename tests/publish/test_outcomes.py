from __future__ import annotations

from arena.publish.outcomes import square
from tests.publish.made import CHARGE, result


def test_a_pass_says_once_with_its_number_and_upper_bound() -> None:
    shown = square((result(n=20),))
    assert (shown.kind, shown.symbol, shown.word, shown.amount) == ("pass", "✓", "once", "1 effect")
    assert shown.number == "0 of 20, ≤ 17%"


def test_a_pass_without_an_effect_does_not_say_once() -> None:
    assert square((result(counts={}),)).word == "none"


def test_two_effects_are_twice_and_three_are_counted() -> None:
    assert square((result(verdict="FAIL"),)).word == "twice"
    assert square((result(verdict="FAIL", counts={CHARGE: 3}),)).word == "3 effects"


def test_a_lost_effect_is_said_to_be_lost() -> None:
    shown = square((result(verdict="FAIL", anomalies=("lost", "run-lost")),))
    assert (shown.symbol, shown.word, shown.amount) == ("○", "lost", "0 effects")


def test_steps_that_ran_again_are_counted() -> None:
    shown = square((result(verdict="FAIL", anomalies=("replayed",), counts={"a{}": 2, "b{}": 3}, key=None),))
    assert shown.word == "3 steps re-run"


def test_a_failure_of_some_trials_looks_another_way_and_shows_k_of_n() -> None:
    shown = square((result(verdict="FAIL", failed=7, n=100),))
    assert (shown.kind, shown.symbol, shown.number) == ("some", "≈", "7 of 100")


def test_a_score_is_shown_beside_the_trials() -> None:
    shown = square(
        (result(verdict="FAIL", anomalies=("replayed",), failed=7, n=104, score="3 of 8", key=None),)
    )
    assert shown.number == "3 of 8 jobs, 7 of 104"


def test_the_worst_point_names_the_square_and_the_others_are_named_too() -> None:
    shown = square((result(), result(verdict="FAIL", anomalies=("lost",)), result(verdict="FAIL")))
    assert (shown.word, shown.also) == ("twice", ("lost",))


def test_a_cell_without_a_verdict_neither_hides_a_failure_nor_is_hidden_by_a_pass() -> None:
    assert square((result(), result(verdict="ERROR"))).kind == "error"
    shown = square((result(verdict="FAIL"), result(verdict="ERROR")))
    assert (shown.kind, shown.unjudged) == ("fail", 1)


def test_unknown_is_not_unsupported() -> None:
    assert square(()).word == "not run"
    assert square((result(verdict="UNSUPPORTED"),)).word == "not supported"
