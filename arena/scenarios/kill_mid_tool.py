"""The pod died during a payment: charged twice, or never?

The agent is asked to charge a card and send a receipt. While it charges the card, its process is killed:

- **before-effect**: the charge has been sent, and the provider has not recorded it;
- **after-effect**: the provider has recorded the charge, and the agent has not heard of it.

A new process then resumes the run by the call that the framework documents. Each point comes in two variants:
*at rest*, when every thread of the agent sleeps and what could be saved is saved, and *at once*, while
background writers may still be at work.

**Must hold:** the provider has seen the charge and the receipt exactly once each, and the resumed run ends by
itself, with an answer. The verdict is given twice: without a key, where every call counts, and with the key
that the tool sent, where calls with the same name, arguments and key are one effect.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order


def _killed_at(point: str) -> tuple[tuple[Leg, ...], ...]:
    return (Leg("start", (Strike((point,)),)),), (Leg("resume"),)


SCENARIO = Scenario(
    name="kill-mid-tool",
    question="the pod died during a payment: charged twice, or never?",
    group="in-flight effects",
    items=(order(),),
    cases=tuple(
        Case(name, point, _killed_at(point))
        for name, point in (
            ("before-effect", "effect:charge_card#1.before"),
            ("after-effect", "effect:charge_card#1.after"),
        )
    ),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
)
