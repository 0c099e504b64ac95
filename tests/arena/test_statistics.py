"""Statistics: exact intervals, against values from tables and the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from arena.statistics import disjoint, interval

counts = st.integers(1, 120).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("failed", "n", "low", "high"),
    [
        (0, 1, 0.0, 0.975),
        (0, 5, 0.0, 0.5218),
        (0, 20, 0.0, 0.1684),
        (0, 100, 0.0, 0.0362),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (20, 20, 0.8316, 1.0),
        (3, 100, 0.0062, 0.0852),
    ],
)
def test_intervals_are_those_of_the_tables(failed: int, n: int, low: float, high: float) -> None:
    assert interval(failed, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("failed", "n"), [(0, 0), (1, 0), (-1, 5), (6, 5), (0, -1)])
def test_what_is_no_count_has_no_interval(failed: int, n: int) -> None:
    with pytest.raises(ValueError):
        interval(failed, n)


def test_a_pass_says_how_often_it_may_fail_all_the_same() -> None:
    low, high = interval(0, 20)
    assert low == 0
    # 1 - (0.05 / 2) ** (1 / 20): the largest probability at which 20 passes are not yet unlikely
    assert high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-4)


@given(counts)
def test_an_interval_holds_the_share_that_was_seen(count: tuple[int, int]) -> None:
    failed, n = count
    low, high = interval(failed, n)
    assert 0 <= low <= failed / n <= high <= 1


@given(counts)
def test_an_interval_is_exact_at_both_ends(count: tuple[int, int]) -> None:
    failed, n = count
    low, high = interval(failed, n)
    # the bounds are rounded to four places, which moves the tail by up to n times as much
    if failed:
        assert binom.sf(failed - 1, n, low) == pytest.approx(0.025, abs=n * 1e-4)
    if failed < n:
        assert binom.cdf(failed, n, high) == pytest.approx(0.025, abs=n * 1e-4)


@given(counts)
def test_failures_and_passes_are_mirrored(count: tuple[int, int]) -> None:
    failed, n = count
    low, high = interval(failed, n)
    assert interval(n - failed, n) == pytest.approx((1 - high, 1 - low), abs=1e-4)


def test_intervals_that_touch_are_not_disjoint() -> None:
    assert not disjoint((0.0, 0.2), (0.2, 0.5))
    assert disjoint((0.0, 0.2), (0.3, 0.5))
    assert disjoint((0.3, 0.5), (0.0, 0.2))
