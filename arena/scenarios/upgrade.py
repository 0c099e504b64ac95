"""We upgraded with runs in flight.

The agent is killed while it charges a card, under the version of the framework that the row is about, and resumed
under the newest one. The newest version itself is resumed under the one before it: a step back. Only modes that
both versions have are run.

**Must hold:** what `kill-mid-tool` demands: the charge and the receipt exactly once each, no transcript refused, and
the resumed run ends by itself, with an answer.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="upgrade",
    question="we upgraded with runs in flight",
    group="restarts and deploys",
    items=(order(),),
    cases=tuple(
        Case(
            f"{side}-effect",
            f"effect:charge_card#1.{side}",
            (
                (Leg("start", (Strike((f"effect:charge_card#1.{side}",)),)),),
                (Leg("resume", elsewhere=True),),
            ),
        )
        for side in ("before", "after")
    ),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
    upgrades=True,
)
