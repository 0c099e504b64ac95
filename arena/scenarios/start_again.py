"""The job queue simply ran it again.

The agent is killed while it charges a card, before or after the provider has recorded the charge. Nobody resumes
the run: the same job is started once more, with the same run id.

**Must hold:** the charge and the receipt exactly once each and an answer, or a clear refusal: the second start ends
with an error before it asks for anything, and nothing was charged twice.
"""

from arena.checkers import effects_once_or_refused, ends_or_refuses, no_transcript_refused
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="start-again",
    question="the job queue simply ran it again",
    group="restarts and deploys",
    items=(order(),),
    cases=tuple(
        Case(
            f"{side}-effect",
            f"effect:charge_card#1.{side}",
            ((Leg("start", (Strike((f"effect:charge_card#1.{side}",)),)),), (Leg("start"),)),
        )
        for side in ("before", "after")
    ),
    rules=(effects_once_or_refused, ends_or_refuses, no_transcript_refused),
)
