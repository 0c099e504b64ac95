"""After the crash my session answers 400 for ever.

The agent is killed while it charges a card, and a new process resumes the run. Then the user asks one more
question in the same session. The model's API is strict, as the real one is: a call without a result, a result
twice or at the wrong place is refused with 400, and a session that has kept such a transcript is refused for ever.

**Must hold:** no transcript is refused, and the second question is answered.
"""

from arena.checkers import last_leg_ends, no_transcript_refused
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="poisoned-session",
    question="after the crash my session answers 400 for ever",
    group="restarts and deploys",
    items=(order(then_ask=True),),
    cases=tuple(
        Case(
            f"{side}-effect",
            f"effect:charge_card#1.{side}",
            (
                (Leg("start", (Strike((f"effect:charge_card#1.{side}",)),)),),
                (Leg("resume"),),
                (Leg("start", question=1),),
            ),
        )
        for side in ("before", "after")
    ),
    rules=(no_transcript_refused, last_leg_ends),
    keys="calls",
)
