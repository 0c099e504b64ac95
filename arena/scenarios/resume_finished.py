"""A retry came after it was done.

The agent charges a card, sends a receipt and answers; its process ends well. Then the run is resumed once more, as
a job queue does that has not heard of the end. Nothing is killed.

**Must hold:** nothing happens again: no effect and no call arrives after the end. The resume may hand in the
answer again, do nothing, or be refused with an error.
"""

from arena.checkers import (
    effects_exactly_once,
    no_transcript_refused,
    nothing_more_after_the_end,
    the_run_ends,
)
from arena.scenario import Case, Leg, Scenario, order

SCENARIO = Scenario(
    name="resume-finished",
    question="a retry came after it was done",
    group="finished work",
    items=(order(),),
    cases=(Case("after-the-end", "end#1", ((Leg("start"),), (Leg("resume"),)), (None,)),),
    rules=(effects_exactly_once, nothing_more_after_the_end, no_transcript_refused, the_run_ends),
)
