"""The operator clicked twice.

A charge needs a person's approval; the run waits, the process ends. The approval comes, the run goes on and ends.
Then a second decision comes: the same approval once more, or a denial that is too late. Nothing is killed.

**Must hold:** the card is charged exactly once. The second decision may be refused with an error, or have no
effect; the run must not wait for a person again.
"""

from arena.checkers import charged_as_decided, decision_is_kept, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, order

_APPROVED = ((Leg("start"),), (Leg("resume", decision="approve"),))

SCENARIO = Scenario(
    name="approval-twice",
    question="the operator clicked twice",
    group="approvals",
    items=(order(receipt=False, on_failure="give-up"),),
    cases=(
        Case(
            "approved-again",
            "decision#2.approve",
            (*_APPROVED, (Leg("resume", decision="approve"),)),
            (None,),
            approval=True,
        ),
        Case(
            "then-denied",
            "decision#2.deny",
            (*_APPROVED, (Leg("resume", decision="deny"),)),
            (None,),
            approval=True,
        ),
    ),
    rules=(charged_as_decided, decision_is_kept, no_transcript_refused, the_run_ends),
)
