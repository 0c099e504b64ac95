"""Statistics of repeated trials: exact intervals, pure functions."""

from __future__ import annotations

from functools import lru_cache

METHOD = "Clopper-Pearson 95 %"


@lru_cache(maxsize=4096)
def interval(failed: int, n: int) -> tuple[float, float]:
    """Return the exact two-sided 95 % interval of the probability of failure, after `failed` of `n` trials.

    Raises:
        ValueError: `n` is 0, or `failed` is not between 0 and `n`.
    """
    if n <= 0 or not 0 <= failed <= n:
        raise ValueError(f"{failed} of {n} trials is no count")
    from scipy.stats import binomtest  # costs a second: only runs that publish or print a table pay it

    found = binomtest(failed, n).proportion_ci(0.95, method="exact")
    return round(float(found.low), 4), round(float(found.high), 4)


def disjoint(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Return whether two intervals have no point in common."""
    return a[1] < b[0] or b[1] < a[0]
