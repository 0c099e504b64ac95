from __future__ import annotations

import xml.etree.ElementTree as ET

from arena.publish.changes import courses, events
from arena.publish.collection import Collection, Published
from arena.publish.feed import atom, badge_json, badge_svg
from arena.publish.recommendation import recommend
from arena.results import Result
from tests.publish.made import file, result


def published(version: str, *results: Result, day: str = "2026-11-30", run: str = "r") -> Published:
    return Published(f"alpha/{version}/{day}.json", file(results, date=day, run=run))


def test_a_cell_that_changes_between_versions_is_told_in_ranges() -> None:
    found, still = courses(
        Collection(
            {},
            {},
            (
                published("1.0", result(version="1.0"), result(version="1.0", key="call-id")),
                published("1.61", result(version="1.61"), result(version="1.61", key="call-id")),
                published(
                    "1.62", result(version="1.62", verdict="FAIL"), result(version="1.62", key="call-id")
                ),
                published("2.0", result(version="2.0", verdict="FAIL"), result(version="2.0", key="call-id")),
            ),
        ),
        "alpha",
    )
    assert [course.sentence for course in found] == ["once until 1.61, twice since 1.62"]
    assert still == 1


def test_a_change_that_chance_explains_says_so() -> None:
    rare = result(version="2.0", verdict="FAIL", failed=2, n=100)
    found, _ = courses(
        Collection({}, {}, (published("1.0", result(version="1.0", n=5)), published("2.0", rare))), "alpha"
    )
    assert found[0].sentence == "once until 1.0, twice since 2.0 (intervals overlap: may be chance)"


def test_a_second_run_lists_what_it_changed_and_the_feed_says_so() -> None:
    everything = Collection(
        {},
        {},
        (
            published("2.0", result(), day="2026-11-29", run="one"),
            published("2.0", result(verdict="FAIL"), result(key="call-id"), run="two"),
        ),
    )
    newest, first = events(everything)
    assert newest.sentence == "1 of 2 cells changed, 1 new"
    assert first.previous is None
    feed = ET.fromstring(atom(everything, events(everything), "https://example.org/"))
    entries = feed.findall("{http://www.w3.org/2005/Atom}entry")
    assert [e.findtext("{http://www.w3.org/2005/Atom}id") for e in entries] == [
        "urn:plugpull:run:two:alpha:2.0",
        "urn:plugpull:run:one:alpha:2.0",
    ]


def test_a_badge_states_facts_and_survives_a_hostile_name() -> None:
    best = recommend(Collection({}, {}, (published("2.0", result(verdict="FAIL")),)), "alpha")
    svg = ET.fromstring(badge_svg("</svg><script>alert(1)</script>", best))
    assert svg.tag.endswith("svg") and not any(e.tag.endswith("script") for e in svg.iter())
    assert "1 of 1 cells fail" in badge_json("Alpha", best)
