"""A batch of calls was half done.

The model asks for three charges in one turn, for three orders. The first 0, 1 or 2 of them, in the order in which
they were asked for, are answered; the rest are held before they are recorded. Then the process is killed, and a
new one resumes the run. A framework that makes the calls of a batch one by one is killed when it has made the
first call that is held and every thread of it sleeps.

**Must hold:** each of the three charges happened exactly once, no transcript is refused, and the resumed run ends
by itself, with an answer.
"""

from arena.checkers import effects_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Item, Leg, Scenario, Strike
from harness.model import Ask, Question, Workload

_ORDERS = ("order-a", "order-b", "order-c")
_BATCH = tuple(Ask("charge_card", {"order": name, "amount": 10 * n}) for n, name in enumerate(_ORDERS, 1))
_QUESTION = Question(f"Charge the cards of {', '.join(_ORDERS)}.", (_BATCH,), "All three are paid.")


def _case(answered: int) -> Case:
    held = tuple(f"effect:charge_card(order={name})#1.before" for name in _ORDERS[answered:])
    done = tuple(f"effect:charge_card(order={name})#1.after" for name in _ORDERS[:answered])
    strike = Strike(held, batch=True, needs=done)
    return Case(f"{answered}-answered", "+".join(held), ((Leg("start", (strike,)),), (Leg("resume"),)))


SCENARIO = Scenario(
    name="parallel-tools",
    question="a batch of calls was half done",
    group="in-flight effects",
    items=(Item(Workload("three-charges", (_QUESTION,))),),
    cases=tuple(_case(answered) for answered in (0, 1, 2)),
    rules=(effects_exactly_once, no_transcript_refused, the_run_ends),
)
