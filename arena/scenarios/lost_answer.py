"""The API timed out but the charge went through.

The provider records the charge and closes the connection without an answer. Nothing is killed: the tool gets an
error, and what happens then is up to the framework and the model. The framework may call again by itself, the
model may ask once more, or the run fails; a run that failed is resumed. The evidence tells these apart.

**Must hold:** the card is charged exactly once and the receipt is sent exactly once, no transcript is refused, and
the run ends by itself, with an answer.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

_CHARGED = "effect:charge_card#1.after"

SCENARIO = Scenario(
    name="lost-answer",
    question="the API timed out but the charge went through",
    group="in-flight effects",
    items=(order(),),
    cases=(
        Case(
            "answer-lost",
            _CHARGED,
            (
                (Leg("start", (Strike((_CHARGED,), action="lose-answer"),)),),
                (Leg("resume", only="if-failed"),),
            ),
            (None,),
        ),
    ),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
)
