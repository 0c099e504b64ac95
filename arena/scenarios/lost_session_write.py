"""The session database dropped a write.

The agent keeps its session in a store on another machine. The store loses one write: either it did not keep the
items (**write-lost**), or it kept them and its acknowledgment got lost (**ack-lost**). The agent sees an error and
ends with it; nothing is killed. Then the run is resumed, with a store that answers. An unharmed run lists the
writes; each of them is lost in turn, and the worst one is repeated.

**Must hold:** every item that was ever written is stored exactly once, and the resumed run ends by itself, with an
answer. If the lost write does not make the first process fail, the trial did not run as designed: ERROR.
"""

from arena.checkers import items_stored_exactly_once, last_leg_ends, no_transcript_refused
from arena.scenario import ANYWHERE, Case, Leg, Scenario, Strike, order

_LOST = ((Leg("start", (Strike((ANYWHERE,), action="lose-answer"),)),), (Leg("resume"),))

SCENARIO = Scenario(
    name="lost-session-write",
    question="the session database dropped a write",
    group="lost writes",
    items=(order(receipt=False),),
    cases=tuple(
        Case(name, name, _LOST, (None,), store=True, boundaries=f"write#*.{side}")
        for name, side in (("write-lost", "before"), ("ack-lost", "after"))
    ),
    rules=(items_stored_exactly_once, no_transcript_refused, last_leg_ends),
    keys="calls",
    explores=True,
)
