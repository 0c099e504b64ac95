"""We deployed while approvals waited.

A charge needs a person's approval. When the framework has saved the run that waits for it, the process is killed.
Later the decision comes, to a new process: approved, or denied.

**Must hold:** approved means charged exactly once, denied means never charged, nothing is charged before the
decision, the decision is not asked for again, and the run ends by itself, with an answer.
"""

from arena.checkers import charged_as_decided, decision_is_kept, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="approval-pending",
    question="we deployed while approvals waited",
    group="approvals",
    items=(order(receipt=False, on_failure="give-up"),),
    cases=(
        Case(
            "then-approved",
            "pause#1",
            ((Leg("start", (Strike(("pause#1",)),)),), (Leg("resume", decision="approve"),)),
            approval=True,
        ),
        Case(
            "then-denied",
            "pause#1.denied",
            ((Leg("start", (Strike(("pause#1",)),)),), (Leg("resume", decision="deny"),)),
            approval=True,
        ),
    ),
    rules=(charged_as_decided, decision_is_kept, no_transcript_refused, the_run_ends),
)
