"""The paused machine woke up after fail-over.

The agent's process is stopped with SIGSTOP, as a paused virtual machine is: while the model is asked what to do
after the price is known, or at the charge, before or after the provider has recorded it. A second process resumes
the run elsewhere, to the end. Then the first one wakes up, its open request is answered, and it goes on.

**Must hold:** the card is charged exactly once and the receipt is sent exactly once, whatever the awakened process
does, and the process that took over ends by itself, with an answer. The awakened process may fail.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, second_leg_ends, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

SCENARIO = Scenario(
    name="zombie",
    question="the paused machine woke up after fail-over",
    group="several workers",
    items=(order(look_up=True),),
    cases=tuple(
        Case(
            name,
            point,
            (
                (Leg("start", (Strike((point,), action="stop"),)),),
                (Leg("resume"),),
                (Leg("continue", wakes=0),),
            ),
        )
        for name, point in (
            ("mid-model", "model#2"),
            ("before-effect", "effect:charge_card#1.before"),
            ("after-effect", "effect:charge_card#1.after"),
        )
    ),
    rules=(effects_exactly_once, no_transcript_refused, second_leg_ends, the_run_ends),
)
