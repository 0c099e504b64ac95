"""Checkers: from histories made by hand to what broke."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.checkers import (
    Found,
    Outcome,
    answer_is_right,
    call_counts,
    calls_exactly_once,
    charged_as_decided,
    decision_is_kept,
    effect_counts,
    effects_exactly_once,
    effects_once_or_refused,
    ends_or_refuses,
    expected_calls,
    finished_calls,
    items_stored_exactly_once,
    judge,
    last_leg_ends,
    no_transcript_refused,
    nothing_finished_runs_again,
    nothing_more_after_the_end,
    repeats_told_apart,
    the_run_ends,
    trial_error,
)
from arena.scenario import Item, Trial, find_scenarios
from harness.history import Event, History
from harness.model import Ask, Question, Workload, identity
from tests.histories import (
    CHARGE,
    RECEIPT,
    Call,
    Story,
    finishing,
    killed_after,
    killed_before,
    nothing,
    scenario,
    trial,
)

KEPT = find_scenarios()["kill-mid-tool"]
LOST_WRITE = find_scenarios()["lost-session-write"]


def verdict(history: History, *, keyed: bool = False) -> tuple[str, tuple[str, ...]]:
    outcome = judge(history, KEPT, trial(keyed=keyed))
    return outcome.verdict, outcome.anomalies


# --- what happened to the effects ---


def test_a_charge_that_was_not_recorded_and_then_made_once_passes() -> None:
    assert verdict(finishing(killed_before()).close()) == ("PASS", ())


def test_a_charge_that_was_recorded_and_made_again_is_duplicated() -> None:
    assert verdict(finishing(killed_after()).close()) == ("FAIL", ("duplicated",))


def test_a_charge_made_again_under_the_same_key_is_one() -> None:
    history = finishing(killed_after("k"), key="k").close()
    assert verdict(history, keyed=True) == ("PASS", ())
    assert verdict(history, keyed=False) == ("FAIL", ("duplicated",))


def test_a_charge_made_again_under_another_key_is_duplicated() -> None:
    history = finishing(killed_after("k"), key="another").close()
    assert verdict(history, keyed=True) == ("FAIL", ("duplicated",))


def test_a_key_that_is_shared_by_two_effects_does_not_hide_one() -> None:
    story = Story().start().effect(CHARGE, "k").effect(RECEIPT, "k").answer().end()
    assert effect_counts(story.close(), trial(keyed=True)) == {
        identity(*CHARGE): 1,
        identity(*RECEIPT): 1,
    }


def test_a_charge_that_is_never_made_is_lost() -> None:
    history = finishing(killed_before(), charge_again=False).close()
    assert verdict(history) == ("FAIL", ("lost",))


def test_a_receipt_that_is_never_sent_is_lost() -> None:
    story = killed_before().resume().effect(CHARGE).answer().end()
    assert verdict(story.close()) == ("FAIL", ("lost",))


def test_an_effect_of_other_arguments_is_not_the_one_that_is_wanted() -> None:
    wrong = ("charge_card", {"order": "order-1", "amount": 420})
    story = Story().start().effect(wrong).effect(RECEIPT).answer().end()
    assert verdict(story.close()) == ("FAIL", ("duplicated", "lost"))


def test_one_lost_and_one_doubled_are_not_two() -> None:
    story = Story().start().effect(CHARGE).effect(CHARGE).answer().end()
    assert verdict(story.close()) == ("FAIL", ("duplicated", "lost"))


def test_a_call_made_anew_by_the_model_in_the_resume_is_asked_again() -> None:
    story = killed_after("k-1").resume().ask().told(CHARGE).effect(CHARGE, "k-2")
    story.ask(CHARGE).told(RECEIPT).effect(RECEIPT, "k-3").ask(RECEIPT).answer().end()
    assert verdict(story.close(), keyed=True) == ("FAIL", ("duplicated", "asked-again"))


def test_a_finished_charge_that_the_model_asks_for_again_is_not_asked_again() -> None:
    # its result had been received: that is `replayed` elsewhere, not an unfinished call asked for anew
    story = Story().start().ask().told(CHARGE).effect(CHARGE).ask(CHARGE).told(RECEIPT).struck()
    story.resume().ask().told(CHARGE).effect(CHARGE).effect(RECEIPT).answer().end()
    assert effects_exactly_once(story.close(), trial()) == {"duplicated"}


# --- how the resume ended ---


@pytest.mark.parametrize(
    ("end", "anomalies"),
    [
        (lambda s: s.answer().end(), ()),
        (lambda s: s.end(), ("unfinished",)),
        (lambda s: s.answer().end(1), ("crashed",)),
        (lambda s: s.ask().end(1), ("crashed",)),
        (lambda s: s.end(1), ("run-lost",)),
        (lambda s: s.end(9, how="killed"), ("run-lost",)),
        (lambda s: s.ask().end(11, how="killed"), ("crashed",)),
        (lambda s: s.add("limit", which="leg", seconds=3.0, limit_s=3).end(9, how="killed"), ("hung",)),
        (
            lambda s: s.answer().add("limit", which="leg", seconds=3.0, limit_s=3).end(9, how="killed"),
            ("hung",),
        ),
    ],
)
def test_the_last_leg_must_end_well_and_answer(
    end: Callable[[Story], Story], anomalies: tuple[str, ...]
) -> None:
    history = end(killed_before().resume()).close()
    assert tuple(the_run_ends(history, trial())) == anomalies
    assert tuple(last_leg_ends(history, trial())) == anomalies


def test_a_leg_that_hung_is_not_made_good_by_a_later_one() -> None:
    story = Story().start().add("limit", which="leg", seconds=1.0, limit_s=1).end(9, how="killed")
    assert the_run_ends(story.resume().answer().end().close(), trial()) == {"hung"}


def test_a_process_that_is_refused_after_the_end_is_no_crash() -> None:
    story = killed_before().resume().ask().answer().end().resume().end(1)
    assert not the_run_ends(story.close(), trial())
    assert last_leg_ends(story.close(), trial()) == {"run-lost"}


def test_a_run_of_which_every_process_was_killed_cannot_be_judged() -> None:
    with pytest.raises(ValueError):
        the_run_ends(killed_before().close(), trial())


def test_a_refused_transcript_is_poisoned() -> None:
    story = killed_before().resume().add("model-refused", turn=1, rule="call-without-result", text="no")
    assert no_transcript_refused(story.end(1).close(), trial()) == {"poisoned"}
    assert not no_transcript_refused(killed_before().close(), trial())


# --- finished work ---

A: Call = ("lookup", {"fact": "a"})
B: Call = ("lookup", {"fact": "b"})
SUM: Call = ("calculator", {"expression": "1 + 2"})
ITEM = Item(
    Workload("w", (Question("?", tuple((Ask(*call),) for call in (A, B, SUM)), "{last}"),)),
    {"a": "1", "b": "2"},
    3.0,
)
READS = trial(item=ITEM)


def looked_up() -> Story:
    """Two lookups have finished, then the agent dies while the model thinks."""
    return Story().start().ask().told(A).arrive(A).ask(A).told(B).arrive(B).ask(B).struck()


def test_finished_lookups_that_do_not_run_again_are_right() -> None:
    history = looked_up().resume().ask().told(SUM).arrive(SUM).ask(SUM).answer("3").end().close()
    assert not calls_exactly_once(history, READS)
    assert not answer_is_right(history, READS)


def test_a_finished_lookup_that_runs_again_is_replayed() -> None:
    history = looked_up().resume().arrive(A).ask().told(SUM).arrive(SUM).answer("3").end().close()
    assert calls_exactly_once(history, READS) == {"replayed"}
    assert nothing_finished_runs_again(history, READS) == {"replayed"}


def test_an_unfinished_lookup_that_runs_again_is_not_replayed() -> None:
    story = Story().start().ask().told(A).arrive(A).struck().resume().arrive(A).ask(A).end()
    assert not nothing_finished_runs_again(story.close(), READS)
    assert "replayed" not in calls_exactly_once(story.close(), READS)


def test_a_call_that_never_ran_is_lost() -> None:
    assert calls_exactly_once(looked_up().resume().answer("3").end().close(), READS) == {"lost"}


def test_a_call_is_finished_when_its_leg_shows_the_result_to_the_model() -> None:
    story = Story().start().ask().told(A).arrive(A)
    assert not finished_calls(story.open())
    assert list(finished_calls(story.ask(A).open())) == [identity(*A)]


def test_a_result_that_failed_does_not_finish_a_call() -> None:
    assert not finished_calls(Story().start().arrive(A).ask(A, failed=True).open())


def test_a_result_shown_in_another_leg_does_not_finish_a_call() -> None:
    assert not finished_calls(Story().start().arrive(A).struck().resume().ask(A).open())


@pytest.mark.parametrize(
    ("text", "right"),
    [("3", True), ("It is 3.", True), ("3.0", True), ("1 + 2 = 3", True), ("4", False), ("three", False),
     ("30", False), ("-3", False), ("", False)],
)  # fmt: skip
def test_an_answer_is_compared_as_a_number(text: str, right: bool) -> None:
    found = answer_is_right(Story().start().answer(text).close(), READS)
    assert found == (frozenset() if right else {"wrong-answer"})


def test_an_answer_with_separators_is_the_same_number() -> None:
    item = Item(ITEM.workload, {}, 1615.0)
    assert not answer_is_right(Story().start().answer("It is 1,615.").close(), trial(item=item))


def test_the_last_answer_counts() -> None:
    history = Story().start().answer("4").struck().resume().answer("3").end().close()
    assert not answer_is_right(history, READS)


def test_without_an_answer_there_is_none_to_compare() -> None:
    assert not answer_is_right(Story().start().end().close(), READS)


# --- approvals ---


def decided(decision: str, *, early: bool = False) -> Story:
    """A run that waits for a person and is resumed with a decision."""
    story = Story().start().ask().told(CHARGE)
    if early:
        story.effect(CHARGE)
    story.add("paused", pid=1).struck()
    return story.start("resume", environment={"PLUGPULL_DECISION": decision})


def test_an_approved_charge_that_is_made_once_is_right() -> None:
    history = decided("approve").effect(CHARGE).answer().end().close()
    assert not charged_as_decided(history, trial())
    assert not decision_is_kept(history, trial())


def test_an_approved_charge_that_is_made_twice_is_duplicated() -> None:
    history = decided("approve").effect(CHARGE).effect(CHARGE).answer().end().close()
    assert charged_as_decided(history, trial()) == {"duplicated"}


def test_an_approved_charge_that_is_never_made_is_lost() -> None:
    assert charged_as_decided(decided("approve").answer().end().close(), trial()) == {"lost"}


def test_a_denied_charge_that_is_not_made_is_right() -> None:
    assert not charged_as_decided(decided("deny").answer().end().close(), trial())


def test_a_denied_charge_that_is_made_is_unapproved() -> None:
    history = decided("deny").effect(CHARGE).answer().end().close()
    assert charged_as_decided(history, trial()) == {"unapproved"}


def test_a_charge_before_the_decision_is_unapproved() -> None:
    history = decided("approve", early=True).answer().end().close()
    assert charged_as_decided(history, trial()) == {"unapproved"}


def test_a_run_that_waits_again_after_the_decision_has_forgotten_it() -> None:
    history = decided("approve").add("paused", pid=1).end().close()
    assert decision_is_kept(history, trial()) == {"approval-forgotten"}
    assert not charged_as_decided(history, trial())


def test_approvals_cannot_be_judged_where_nobody_decided() -> None:
    for rule in (charged_as_decided, decision_is_kept):
        with pytest.raises(ValueError):
            rule(killed_before().resume().answer().end().close(), trial())


# --- started again, resumed after the end ---


def test_a_start_that_is_refused_leaves_the_unmade_charge_unjudged() -> None:
    refused = killed_before().start().end(1).close()
    assert not effects_once_or_refused(refused, trial())
    assert not ends_or_refuses(refused, trial())


def test_a_start_that_is_not_refused_and_charges_again_is_duplicated() -> None:
    again = killed_after().start().ask().effect(CHARGE).effect(RECEIPT).answer().end().close()
    assert effects_once_or_refused(again, trial()) == {"duplicated"}


def test_a_refusal_after_a_second_charge_is_no_refusal() -> None:
    again = killed_after().start().ask().effect(CHARGE).end(1).close()
    assert effects_once_or_refused(again, trial()) == {"duplicated", "lost"}
    assert ends_or_refuses(again, trial()) == {"crashed"}


def test_a_call_after_the_end_is_replayed() -> None:
    ended = killed_before().resume().effect(CHARGE).answer().end()
    assert not nothing_more_after_the_end(ended.close(), trial())
    assert nothing_more_after_the_end(ended.resume().arrive(CHARGE).close(), trial()) == {"replayed"}


def test_repeats_are_told_apart_by_who_asked_for_them() -> None:
    story = Story().start().ask().told(CHARGE).arrive(CHARGE).arrive(CHARGE).told(CHARGE).arrive(CHARGE)
    story.struck().resume().arrive(CHARGE)
    assert repeats_told_apart(story.close()) == {
        "framework_retries": 1,
        "model_asked_again": 1,
        "client_retries": 0,
        "resumed": 1,
    }


# --- the session store ---


class Session:
    """A run whose session is kept in the store; it keeps what a store would, unless it is told to lose it."""

    def __init__(self) -> None:
        self.story = Story().start()
        self._held: dict[str, list[str]] = {}

    def write(
        self, *items: str, session: str = "s", operation: str = "append", keeps: bool = True
    ) -> "Session":
        """Let a write arrive, and be stored unless the store loses it."""
        asked = {"operation": operation, "items": list(items)}
        self.story.add("arrived", what="write", name=session, arguments=asked, pid=1, n=1)
        held = self._held.setdefault(session, [])
        if keeps:
            self.story.add("stored", session=session, operation=operation, items=list(items), n=1)
            if operation == "append":
                held.extend(items)
            elif operation == "clear":
                held.clear()
            else:
                held.pop()
        return self

    def lost(self, *items: str, kept: bool, session: str = "s") -> "Session":
        """Lose a write, or its acknowledgment only (`kept`)."""
        self.write(*items, session=session, keeps=kept)
        self.story.add("struck", action="lose-answer", points=["write#1.before"], held=1)
        return self

    def fails(self, status: int = 1) -> "Session":
        """End the start with an error and begin the resume."""
        self.story.end(status).resume()
        return self

    def close(self, *, without: str = "") -> History:
        """Let the resume answer, and return the history with what the store holds, but for one session."""
        self.story.ask().answer().end()
        for session, items in self._held.items():
            if session != without:
                counts = {item: items.count(item) for item in items}
                self.story.add("store", leg=None, session=session, items=counts)
        return self.story.close()


def test_a_lost_item_that_is_written_again_is_right() -> None:
    history = Session().write("a").lost("b", kept=False).fails().write("b").write("c").close()
    assert not items_stored_exactly_once(history, trial())
    assert judge(history, LOST_WRITE, trial()) == Outcome("PASS")


def test_a_lost_item_that_is_never_written_again_is_lost() -> None:
    history = Session().write("a").lost("b", kept=False).fails().write("c").close()
    assert items_stored_exactly_once(history, trial()) == {"lost"}
    assert judge(history, LOST_WRITE, trial()) == Outcome("FAIL", ("lost",))


def test_a_kept_item_whose_acknowledgment_was_lost_is_right_if_it_is_not_written_again() -> None:
    history = Session().write("a").lost("b", kept=True).fails().write("c").close()
    assert judge(history, LOST_WRITE, trial()) == Outcome("PASS")


def test_a_kept_item_whose_acknowledgment_was_lost_and_that_is_written_again_is_duplicated() -> None:
    history = Session().write("a").lost("b", kept=True).fails().write("b").close()
    assert judge(history, LOST_WRITE, trial()) == Outcome("FAIL", ("duplicated",))


def test_an_item_that_the_resume_writes_twice_is_duplicated_although_it_was_never_lost() -> None:
    history = Session().write("a").lost("b", kept=False).fails().write("a", "b").close()
    assert items_stored_exactly_once(history, trial()) == {"duplicated"}


def test_one_item_lost_and_one_twice_are_both_said() -> None:
    history = Session().write("a").lost("b", "c", kept=False).fails().write("a").close()
    assert items_stored_exactly_once(history, trial()) == {"duplicated", "lost"}


def test_items_of_one_write_are_counted_one_by_one() -> None:
    history = Session().lost("a", "b", kept=False).fails().write("a").close()
    assert items_stored_exactly_once(history, trial()) == {"lost"}


def test_the_same_item_in_two_sessions_is_in_each_once() -> None:
    history = Session().write("a", session="other").lost("a", kept=False).fails().write("a").close()
    assert not items_stored_exactly_once(history, trial())


@pytest.mark.parametrize(("holds", "loses"), [("s", "other"), ("other", "s")])
def test_an_item_that_another_session_holds_is_lost_in_its_own(holds: str, loses: str) -> None:
    history = Session().write("a", session=holds).lost("a", session=loses, kept=False).fails().close()
    assert items_stored_exactly_once(history, trial()) == {"lost"}


@pytest.mark.parametrize("operation", ["pop", "clear"])
def test_an_item_that_the_framework_removed_again_is_not_lost(operation: str) -> None:
    session = Session().write("a").lost("b", kept=True).fails()
    assert not items_stored_exactly_once(session.write(operation=operation).close(), trial())


def test_an_item_that_is_there_twice_is_duplicated_although_others_were_removed() -> None:
    session = Session().write("a").lost("b", kept=True).fails().write("b").write("c").write(operation="pop")
    assert items_stored_exactly_once(session.close(), trial()) == {"duplicated"}


def test_a_removal_that_the_store_lost_removed_nothing() -> None:
    session = Session().write("a").write(operation="pop", keeps=False).lost("b", kept=False).fails()
    assert items_stored_exactly_once(session.close(), trial()) == {"lost"}


def test_a_start_that_ends_well_after_its_write_was_lost_is_an_error() -> None:
    outcome = judge(
        Session().write("a").lost("b", kept=False).fails(status=0).write("b").close(), LOST_WRITE, trial()
    )
    assert (outcome.verdict, "did not make the run fail" in outcome.reason) == ("ERROR", True)


def test_a_start_that_is_ended_by_a_signal_after_its_write_was_lost_has_failed() -> None:
    session = Session().write("a").lost("b", kept=False)
    session.story.end(6, how="killed").resume()
    assert judge(session.write("b").close(), LOST_WRITE, trial()) == Outcome("PASS")


def test_a_start_that_goes_on_writing_after_the_lost_write_is_an_error() -> None:
    outcome = judge(
        Session().lost("a", kept=False).write("b").fails().write("a").close(), LOST_WRITE, trial()
    )
    assert (outcome.verdict, "kept writing" in outcome.reason) == ("ERROR", True)


def test_a_start_that_goes_on_with_other_calls_after_the_lost_write_is_judged() -> None:
    session = Session().lost("a", kept=False)
    session.story.effect(CHARGE)
    assert judge(session.fails().write("a").close(), LOST_WRITE, trial()) == Outcome("PASS")


def test_a_trial_in_which_no_write_was_lost_is_an_error() -> None:
    history = Session().write("a").fails().write("b").close()
    assert judge(history, LOST_WRITE, trial()).verdict == "ERROR"


def test_a_trial_without_an_end_of_its_start_is_an_error() -> None:
    history = Session().write("a").lost("b", kept=False).fails().write("b").close()
    blind = History(tuple(e for e in history if (e.kind, e.leg) != ("leg-ended", 0)))
    assert judge(blind, LOST_WRITE, trial()).verdict == "ERROR"


def test_a_store_that_was_not_read_at_the_end_is_an_error_and_not_an_empty_one() -> None:
    session = Session().write("a", session="other").lost("b", kept=False).fails().write("b")
    outcome = judge(session.close(without="s"), LOST_WRITE, trial())
    assert (outcome.verdict, outcome.anomalies) == ("ERROR", ())


# --- what could not be judged ---


def reason(history: History) -> str:
    outcome = judge(history, KEPT, trial())
    assert outcome.verdict == "ERROR"
    assert not outcome.anomalies
    return outcome.reason


def test_a_failed_check_is_an_error_whatever_else_happened() -> None:
    story = Story().start().effect(CHARGE).effect(RECEIPT).struck(ok=False).resume().answer().end()
    assert "check failed" in reason(story.close())


def test_a_trial_that_could_not_go_on_is_an_error() -> None:
    story = finishing(killed_before()).add("error", reason="missing fact: who holds the request")
    assert reason(story.close()) == "missing fact: who holds the request"


def test_a_history_that_was_not_closed_is_an_error() -> None:
    assert "not closed" in reason(finishing(killed_before()).open())


def test_an_empty_history_is_an_error() -> None:
    assert reason(History(()))


def test_a_target_that_reports_another_version_is_an_error() -> None:
    story = Story().start(version="1.2.24").add("hello", said_version="1.2.11").effect(CHARGE).effect(RECEIPT)
    assert "1.2.11" in reason(story.answer().end().close())


def test_a_target_that_reports_the_version_that_was_read_is_believed() -> None:
    story = Story().start(version="1.2.24").add("hello", said_version="1.2.24").effect(CHARGE).effect(RECEIPT)
    assert judge(story.answer().end().close(), KEPT, trial()) == Outcome("PASS")


def test_a_mode_that_is_read_back_as_another_is_an_error() -> None:
    story = finishing(killed_before()).add("mode-read", pragma="journal_mode", asked="wal", found="delete")
    assert "read back as delete" in reason(story.close())


def test_a_rule_that_raises_gives_an_error() -> None:
    def raises(_: History, __: Trial) -> Found:
        raise ZeroDivisionError("by 0")

    outcome = judge(finishing(killed_before()).close(), scenario(nothing, raises), trial())
    assert (outcome.verdict, "ZeroDivisionError" in outcome.reason) == ("ERROR", True)


def test_an_absent_fact_gives_an_error() -> None:
    history = finishing(killed_before()).close()
    blind = History(
        tuple(
            Event(e.at, e.leg, e.kind, {k: v for k, v in e.facts.items() if k != "status"}) for e in history
        )
    )
    assert "status" in reason(blind)


@given(st.data())
def test_no_fact_that_a_passing_trial_rests_on_can_be_taken_away_for_a_better_verdict(
    data: st.DataObject,
) -> None:
    history = finishing(killed_after()).close()
    assert verdict(history) == ("FAIL", ("duplicated",))
    at = data.draw(st.integers(0, len(history.events) - 1))
    event = history.events[at]
    if not event.facts:
        return
    fact = data.draw(st.sampled_from(sorted(event.facts)))
    less = Event(event.at, event.leg, event.kind, {k: v for k, v in event.facts.items() if k != fact})
    poorer = History((*history.events[:at], less, *history.events[at + 1 :]))
    assert judge(poorer, KEPT, trial()).verdict != "PASS"


def test_a_keyed_verdict_without_any_key_is_an_error() -> None:
    outcome = judge(finishing(killed_before()).close(), KEPT, trial(keyed=True))
    assert (outcome.verdict, "no key" in outcome.reason) == ("ERROR", True)


# --- properties ---

effects = st.lists(
    st.tuples(st.sampled_from((CHARGE, RECEIPT)), st.sampled_from((None, "k-1", "k-2"))), max_size=8
)


def recorded(rows: list[tuple[Call, str | None]]) -> History:
    story = Story().start()
    for call, key in rows:
        story.effect(call, key)
    return story.close()


@given(effects)
def test_a_key_never_makes_more_effects(rows: list[tuple[Call, str | None]]) -> None:
    history = recorded(rows)
    keyed, plain = (effect_counts(history, trial(keyed=k)) for k in (True, False))
    assert keyed.keys() == plain.keys()
    assert all(keyed[name] <= plain[name] for name in plain)
    assert all((keyed[name] == 0) == (plain[name] == 0) for name in plain)


@given(effects)
def test_without_a_key_every_record_is_an_effect(rows: list[tuple[Call, str | None]]) -> None:
    assert sum(effect_counts(recorded(rows), trial()).values()) == len(rows)


@given(effects, st.randoms(use_true_random=False))
def test_the_order_of_effects_does_not_change_their_counts(
    rows: list[tuple[Call, str | None]], random: Random
) -> None:
    mixed = list(rows)
    random.shuffle(mixed)
    for keyed in (True, False):
        assert effect_counts(recorded(rows), trial(keyed=keyed)) == effect_counts(
            recorded(mixed), trial(keyed=keyed)
        )


UNRELATED = (
    Event(0.0, 0, "hello", {"said_mood": "fine"}),
    Event(0.0, 0, "paused", {"pid": 1}),
    Event(0.0, 1, "barrier", {"reason": "met"}),
    Event(0.0, 1, "left-behind", {"pid": 3, "group": 3, "in_group": False, "ended": "itself"}),
    Event(0.0, 0, "held", {"point": "p"}),
    Event(0.0, 0, "checked", {"check": "another", "ok": True}),
)


@given(st.lists(st.tuples(st.sampled_from(UNRELATED), st.integers(0, 9)), max_size=6), st.booleans())
def test_unrelated_events_change_no_verdict(additions: list[tuple[Event, int]], again: bool) -> None:
    history = finishing(killed_after("k"), key="k" if again else "other").close()
    events = list(history.events)
    for event, place in additions:
        events.insert(place, event)
    for keyed in (True, False):
        assert verdict(History(tuple(events)), keyed=keyed) == verdict(history, keyed=keyed)


@given(st.lists(st.sampled_from((A, B, SUM)), max_size=8), st.randoms(use_true_random=False))
def test_calls_are_counted_over_all_legs_in_any_order(calls: list[Call], random: Random) -> None:
    one = Story().start()
    for call in calls:
        one.arrive(call)
    mixed = list(calls)
    random.shuffle(mixed)
    two = Story().start()
    for number, call in enumerate(mixed):
        if number == len(mixed) // 2:
            two.struck().resume()
        two.arrive(call)
    assert call_counts(one.close()) == call_counts(two.close())


def test_every_call_of_the_workload_is_expected_once() -> None:
    assert expected_calls(READS, ("lookup", "calculator")) == {
        identity(*A): 1,
        identity(*B): 1,
        identity(*SUM): 1,
    }
    assert trial_error(finishing(killed_before()).close()) == ""
