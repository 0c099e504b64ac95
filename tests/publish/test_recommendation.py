from __future__ import annotations

from arena.publish.collection import Collection, Published
from arena.publish.recommendation import recommend
from arena.results import Result
from tests.publish.made import CALL, file, result


def collection(*results: Result, version: str = "2.0") -> Collection:
    return Collection({}, {}, (Published(f"alpha/{version}/2026-11-30.json", file(results)),))


def test_the_mode_and_key_with_the_fewest_failures_is_recommended_with_its_call() -> None:
    best = recommend(
        collection(
            result(mode="a", verdict="FAIL"),
            result(mode="a", key="call-id"),
            result(mode="b", verdict="FAIL"),
            result(mode="b", key="call-id", verdict="FAIL", failed=1),
        ),
        "alpha",
    )
    assert best is not None
    assert (best.mode, best.key, best.judged, best.failing) == ("a", "with", 1, ())
    assert best.recipe is not None and best.recipe.call == CALL


def test_cells_that_count_calls_belong_to_both_uses_of_the_key() -> None:
    best = recommend(collection(result(), result(point="model#3@rest", key=None, verdict="FAIL")), "alpha")
    assert best is not None and (len(best.passing), len(best.failing)) == (1, 1)


def test_among_equals_the_one_without_a_key_is_less_to_do() -> None:
    best = recommend(collection(result(), result(key="call-id")), "alpha")
    assert best is not None and best.key == "none"


def test_a_use_of_the_key_that_is_not_supported_is_no_candidate() -> None:
    best = recommend(
        collection(
            result(verdict="FAIL"),
            result(key="other", verdict="UNSUPPORTED"),
            result(point="m@rest", key=None),
        ),
        "alpha",
    )
    assert best is not None and best.key == "none"


def test_without_a_verdict_there_is_no_recommendation() -> None:
    assert recommend(collection(result(verdict="ERROR")), "alpha") is None


def test_only_the_newest_version_counts_and_versions_are_ordered_as_versions() -> None:
    both = Collection(
        {},
        {},
        (
            Published("alpha/1.10/2026-11-30.json", file([result(version="1.10", mode="new")])),
            Published("alpha/1.9/2026-11-30.json", file([result(version="1.9", mode="old")])),
        ),
    )
    best = recommend(both, "alpha")
    assert best is not None and (best.version, best.mode) == ("1.10", "new")
