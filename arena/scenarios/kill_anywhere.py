"""Is there any moment that breaks it?

The agent looks up a price, charges a card and sends a receipt, once without any harm. Every request it makes is a
boundary: each turn of the model, each call before and after it is recorded, the answer. Then it is killed once at
each boundary and resumed, so the list is complete by construction. The worst boundary is repeated: the cell's
numbers are about that one, and the histogram says what happened at each.

**Must hold:** at every boundary, what `kill-mid-model` demands: effects exactly once, no finished call again, no
transcript refused, and the resumed run ends by itself, with an answer.
"""

from arena.checkers import (
    effects_exactly_once,
    no_transcript_refused,
    nothing_finished_runs_again,
    the_run_ends,
)
from arena.scenario import ANYWHERE, Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="kill-anywhere",
    question="is there any moment that breaks it?",
    group="in-flight effects",
    items=(order(look_up=True),),
    cases=(Case("worst-boundary", ANYWHERE, ((Leg("start", (Strike((ANYWHERE,)),)),), (Leg("resume"),))),),
    rules=(effects_exactly_once, nothing_finished_runs_again, no_transcript_refused, the_run_ends),
    explores=True,
)
