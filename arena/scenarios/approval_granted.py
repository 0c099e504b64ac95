"""Approved, then the worker died.

A charge needs a person's approval; the run waits, the process ends. The approval comes to a new process, which is
killed while it charges the card: before or after the provider has recorded the charge. Nobody decides again: a
third process resumes the run without a decision.

**Must hold:** the card is charged exactly once, the approval is not asked for again, and the run ends by itself,
with an answer. A run that asks again has forgotten the approval, however often it charged.
"""

from arena.checkers import charged_as_decided, decision_is_kept, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="approval-granted",
    question="approved, then the worker died",
    group="approvals",
    items=(order(receipt=False, on_failure="give-up"),),
    cases=tuple(
        Case(
            f"{side}-effect",
            f"effect:charge_card#1.{side}",
            (
                (Leg("start"),),
                (Leg("resume", (Strike((f"effect:charge_card#1.{side}",)),), decision="approve"),),
                (Leg("resume"),),
            ),
            approval=True,
        )
        for side in ("before", "after")
    ),
    rules=(charged_as_decided, decision_is_kept, no_transcript_refused, the_run_ends),
)
