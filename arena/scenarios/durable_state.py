"""Does finished work run again?

The agent looks up two facts, one after the other, then calculates with them. It is killed while the model is
asked for its third turn: both lookups have finished, the calculation has not begun. A new process resumes the
run by the call that the framework documents. There are eight such jobs, a trial each; the score is how many of
the eight passed.

**Must hold:** each lookup and the calculation arrived exactly once over both processes, the resumed run ends by
itself, and its answer is right, compared as a number. An agent that starts over still gets the right answer:
only the counts of calls tell. The cell also reports the bytes that the agent had saved when it died.
"""

from arena.checkers import answer_is_right, calls_exactly_once, no_transcript_refused, the_run_ends
from arena.scenario import Case, Item, Leg, Scenario, Strike
from harness.model import Ask, Question, Workload

#: (first fact, its value, operator, second fact, its value): one job each.
_JOBS = (
    ("the price of a night", 120, "*", "the number of nights", 3),
    ("the seats in the hall", 450, "-", "the seats sold", 137),
    ("the weight of a crate", 18, "*", "the number of crates", 24),
    ("the length of the fence", 96, "/", "the distance between posts", 4),
    ("the balance in March", 1275, "+", "the deposit in April", 340),
    ("the pages of the first volume", 388, "+", "the pages of the second volume", 415),
    ("the people who registered", 212, "-", "the people who cancelled", 19),
    ("the litres in the tank", 900, "/", "the litres used in a day", 36),
)
_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _item(number: int, first: str, a: int, operator: str, second: str, b: int) -> Item:
    turns = (
        (Ask("lookup", {"fact": first}),),
        (Ask("lookup", {"fact": second}),),
        (Ask("calculator", {"expression": f"{a} {operator} {b}"}),),
    )
    prompt = f"Look up {first} and {second}, then work out the first {operator} the second."
    workload = Workload(f"facts-{number}", (Question(prompt, turns, "{last}"),))
    return Item(workload, {first: str(a), second: str(b)}, float(_OPERATORS[operator](a, b)))


SCENARIO = Scenario(
    name="durable-state",
    question="does finished work run again?",
    group="finished work",
    items=tuple(_item(number, *job) for number, job in enumerate(_JOBS, 1)),
    cases=(Case("after-lookups", "model#3", ((Leg("start", (Strike(("model#3",)),)),), (Leg("resume"),))),),
    rules=(calls_exactly_once, answer_is_right, no_transcript_refused, the_run_ends),
    keys="calls",
    scored=True,
)
