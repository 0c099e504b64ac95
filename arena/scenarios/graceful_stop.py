"""A rolling deploy sends SIGTERM.

While the agent charges a card, and the provider has recorded the charge, its process group gets SIGTERM, as a
container does before it is stopped. The charge is answered after one second, or never. What still runs after five
seconds gets SIGKILL. Then a new process resumes the run.

**Must hold:** the card is charged exactly once and the receipt is sent exactly once, no transcript is refused, and
the run ends by itself, with an answer: in the process that was asked to stop, or in the resume.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Leg, Scenario, Strike, order

_CHARGED = "effect:charge_card#1.after"

SCENARIO = Scenario(
    name="graceful-stop",
    question="a rolling deploy sends SIGTERM",
    group="restarts and deploys",
    items=(order(),),
    cases=tuple(
        Case(
            name,
            point,
            (
                (Leg("start", (Strike((_CHARGED,), action="terminate", answer_after_s=answered),)),),
                (Leg("resume"),),
            ),
        )
        for name, point, answered in (
            ("answered-after-1s", f"{_CHARGED}.answered", 1.0),
            ("never-answered", f"{_CHARGED}.unanswered", None),
        )
    ),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
)
