"""Points: as text and as data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.points import Point, PointError, parse_point

names = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
values = st.text(st.characters(codec="utf-8", exclude_characters="(),="), max_size=12).map(str.strip)
numbers = st.integers(min_value=1, max_value=10**6)
tool_points = st.builds(
    Point,
    kind=st.sampled_from(("effect", "call")),
    n=numbers,
    name=names,
    arguments=st.lists(st.tuples(names, values), max_size=3).map(tuple),
    side=st.sampled_from(("before", "after")),
)
bare_points = st.builds(Point, kind=st.sampled_from(("model", "pause", "answer")), n=numbers)


@given(st.one_of(tool_points, bare_points))
def test_a_point_survives_being_written_and_read(point: Point) -> None:
    assert parse_point(str(point)) == point


@given(st.one_of(tool_points, bare_points))
def test_a_points_text_survives_being_read_and_written(point: Point) -> None:
    assert str(parse_point(str(point))) == str(point)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "effect",
        "effect:charge_card",
        "effect:charge_card#1",
        "effect:charge_card#0.before",
        "effect:charge_card#1.during",
        "effect:Charge#1.before",
        "effect:#1.before",
        "effect:a#1.before.after",
        "effect:a(order)#1.before",
        "model",
        "model#0",
        "model#1.before",
        "model#-1",
        "tool:a#1.before",
        " model#1",
        "model#1\n",
    ],
)
def test_a_text_that_is_no_point_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(PointError) as refused:
        parse_point(text)
    assert repr(text) in str(refused.value)


@given(st.text(max_size=40))
def test_any_text_is_a_point_or_a_point_error(text: str) -> None:
    try:
        point = parse_point(text)
    except PointError:
        return
    assert parse_point(str(point)) == point


def test_a_point_with_arguments_counts_only_calls_with_these() -> None:
    point = parse_point("effect:charge_card(order=o-1)#1.before")
    assert point.counts("effect", "charge_card", {"order": "o-1", "amount": 3})
    assert not point.counts("effect", "charge_card", {"order": "o-2", "amount": 3})
    assert not point.counts("effect", "charge_card", {"amount": 3})


def test_a_point_counts_numbers_by_their_text() -> None:
    assert parse_point("effect:pay(amount=42)#1.after").counts("effect", "pay", {"amount": 42})


def test_a_point_without_arguments_counts_every_call_of_its_tool() -> None:
    point = parse_point("call:lookup#2.before")
    assert point.counts("call", "lookup", {"fact": "a"})
    assert not point.counts("effect", "lookup", {"fact": "a"})
    assert not point.counts("call", "calculator", {})
