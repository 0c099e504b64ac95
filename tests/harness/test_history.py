"""The history: one order of events, read without losing or inventing a fact."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history import KINDS, Event, History, canonical, history_from_json

facts = st.dictionaries(
    st.text(max_size=8), st.one_of(st.text(max_size=8), st.integers(), st.booleans()), max_size=3
)
events = st.builds(
    Event,
    at=st.floats(0, 10**4).map(lambda at: round(at, 4)),
    leg=st.one_of(st.none(), st.integers(0, 5)),
    kind=st.sampled_from(sorted(KINDS)),
    facts=facts,
)
histories = st.lists(events, max_size=6).map(tuple).map(History)


@given(histories)
def test_a_history_survives_being_written_and_read(history: History) -> None:
    read = history_from_json(json.loads(json.dumps(history.to_json())))
    assert read == history
    assert read.digest() == history.digest()


@given(histories, st.data())
def test_a_changed_fact_changes_the_digest(history: History, data: st.DataObject) -> None:
    if not history.events:
        return
    at = data.draw(st.integers(0, len(history.events) - 1))
    event = history.events[at]
    changed = Event(event.at, event.leg, event.kind, {**event.facts, "forged": True})
    forged = History((*history.events[:at], changed, *history.events[at + 1 :]))
    assert forged.digest() != history.digest()


def test_the_order_of_events_is_part_of_the_digest() -> None:
    a, b = Event(1.0, 0, "answer", {"text": "a"}), Event(1.0, 0, "answer", {"text": "b"})
    assert History((a, b)).digest() != History((b, a)).digest()


def test_the_order_of_facts_is_no_part_of_the_digest() -> None:
    a = History((Event(1.0, 0, "answer", {"text": "a", "pid": 1}),))
    b = History((Event(1.0, 0, "answer", {"pid": 1, "text": "a"}),))
    assert a.digest() == b.digest()


def test_an_event_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="wished"):
        history_from_json([[0.0, None, "wished", {}]])


@pytest.mark.parametrize("row", [[], [0.0, None, "closed"], ["soon", None, "closed", {}]])
def test_a_row_that_is_no_event_is_refused(row: list[Any]) -> None:
    with pytest.raises(ValueError):
        history_from_json([row])


def test_an_absent_fact_raises_when_it_is_read() -> None:
    event = Event(0.0, 0, "leg-ended", {"how": "exited"})
    with pytest.raises(KeyError):
        event["status"]


def test_events_are_found_by_kind_and_leg() -> None:
    rows = [Event(0.0, 0, "answer", {}), Event(1.0, 1, "answer", {}), Event(2.0, 1, "closed", {})]
    history = History(tuple(rows))
    assert history.of("answer", leg=1) == (rows[1],)
    assert history.of("answer", "closed") == tuple(rows)


def test_equal_values_have_equal_canonical_text() -> None:
    assert canonical({"b": 1, "a": "ü"}) == canonical({"a": "ü", "b": 1}) == '{"a":"ü","b":1}'
