"""It died while the model was thinking.

The agent looks up a price, charges a card and sends a receipt; the model is asked four times. It is killed while
one of these requests is open. A new process resumes the run by the call that the framework documents.

At **model#1** nothing has happened yet, and in many modes nothing durable exists yet: a run that had been accepted
and cannot be resumed is *run lost*, which is not the same as a lost charge. At **model#4** all work is done.

**Must hold:** the provider has seen the charge and the receipt exactly once each, no call that had finished runs
again, no transcript is refused, and the resumed run ends by itself, with an answer.
"""

from arena.checkers import (
    effects_exactly_once,
    no_transcript_refused,
    nothing_finished_runs_again,
    the_run_ends,
)
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="kill-mid-model",
    question="it died while the model was thinking",
    group="finished work",
    items=(order(look_up=True),),
    cases=tuple(
        Case(f"turn-{n}", f"model#{n}", ((Leg("start", (Strike((f"model#{n}",)),)),), (Leg("resume"),)))
        for n in (1, 2, 3, 4)
    ),
    rules=(effects_exactly_once, nothing_finished_runs_again, no_transcript_refused, the_run_ends),
)
