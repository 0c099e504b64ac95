"""It dies again on every restart.

The agent is killed while it charges a card, before or after the provider has recorded the charge. Each resume is
killed at its charge too, until the third kill; then the run is resumed a last time and left alone. A resume that
no longer charges is not killed.

**Must hold:** the card is charged exactly once and the receipt is sent exactly once, no transcript is refused, and
the last resume ends by itself, with an answer. The evidence reports how the saved state grew from leg to leg.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order


def _case(side: str) -> Case:
    strike = (Strike((f"effect:charge_card#1.{side}",)),)
    killed = tuple((Leg(word, strike),) for word in ("start", "resume", "resume"))
    return Case(f"{side}-effect", f"effect:charge_card#1.{side}", (*killed, (Leg("resume"),)))


SCENARIO = Scenario(
    name="crash-loop",
    question="it dies again on every restart",
    group="restarts and deploys",
    items=(order(),),
    cases=(_case("before"), _case("after")),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
)
