"""Two workers picked up the same run.

A run was killed before the provider recorded its charge, or waits for an approval. Two processes resume it at the
same moment. The first one's charge is not answered until the other has come to its own charge, has ended, or 3
seconds have passed, so neither is ahead by luck; the evidence says which.

**Must hold:** the card is charged exactly once, and one of the two ends by itself, with an answer. The other may
wait for its turn, do nothing, or be refused with an error.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

_CHARGE = "effect:charge_card#1.before"
_MEET = (Strike((_CHARGE,), action="meet"),)
_APPROVE = Leg("resume", _MEET, decision="approve")

SCENARIO = Scenario(
    name="resume-race",
    question="two workers picked up the same run",
    group="several workers",
    items=(order(receipt=False),),
    cases=(
        Case(
            "killed-run",
            _CHARGE,
            ((Leg("start", (Strike((_CHARGE,)),)),), (Leg("resume", _MEET), Leg("resume", _MEET))),
            ("rest",),
        ),
        Case(
            "two-approvals",
            "decision#1.twice",
            ((Leg("start"),), (_APPROVE, _APPROVE)),
            (None,),
            approval=True,
        ),
    ),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
)
