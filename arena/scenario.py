"""What a scenario is made of: a user's question, a workload, legs with their faults, and what must hold.

Scenarios are modules under `arena/scenarios/`, found by looking; each defines one `SCENARIO`. They know no
adapter: whatever differs between frameworks stands behind the target's contract.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from arena import scenarios
from arena.words import Anomaly
from harness.faults import Action, Fault, Timing
from harness.history import History
from harness.model import Ask, OnFailure, Question, Workload
from harness.plan import Only
from harness.points import parse_point

Rule = Callable[[History, "Trial"], frozenset[Anomaly]]
#: Stands for the boundary that a trial of an exploring scenario strikes at.
ANYWHERE = "anywhere"
#: `both`: the scenario's rules give one verdict without a key and one with it; `calls`: they count calls.
Keys = Literal["both", "calls"]


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault of a leg, with points as text; the timing comes from the cell."""

    points: tuple[str, ...]
    action: Action = "kill"
    answer_after_s: float | None = None
    kill_after_s: float = 5.0
    batch: bool = False
    needs: tuple[str, ...] = ()

    def fault(self, timing: Timing | None, anywhere: str | None = None) -> Fault:
        """Return the harness's fault; `anywhere` is the point that stands for `ANYWHERE`."""
        return Fault(
            tuple(
                parse_point(anywhere if point == ANYWHERE and anywhere else point) for point in self.points
            ),
            self.action,
            timing or "once",
            self.answer_after_s,
            self.kill_after_s,
            self.batch,
            tuple(parse_point(point) for point in self.needs),
        )


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg of a case.

    Attributes:
        word: `start`, `resume`, or `continue` for a leg that was stopped.
        strikes: its faults.
        decision: what a person has decided; comes with the resume that tells the agent.
        only: `if-failed` skips it unless the leg before ended with another status than 0.
        wakes: for `continue`: which leg.
        question: index of the workload's question that the user asks in this leg.
        elsewhere: it runs under the other version of an upgrade: the newest, or the one before the newest.
    """

    word: Literal["start", "resume", "continue"]
    strikes: tuple[Strike, ...] = ()
    decision: Literal["approve", "deny"] | None = None
    only: Only = "always"
    wakes: int | None = None
    question: int = 0
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One fault point of a scenario.

    Attributes:
        name: the point in words, e.g. `before-effect`; unique within the scenario.
        point: the point as text; the cell's coordinate, together with the timing.
        stages: legs that run one stage after the other; the legs of a stage run at once.
        timings: the variants of the point; (None,) where nothing is struck or it makes no difference.
        approval: whether `charge_card` waits for a person, which not every framework can.
        store: whether the session is kept in the harness's store, which not every framework can.
        boundaries: in an exploring scenario: a glob over the boundaries that are struck.
    """

    name: str
    point: str
    stages: tuple[tuple[Leg, ...], ...]
    timings: tuple[Timing | None, ...] = ("rest", "once")
    approval: bool = False
    store: bool = False
    boundaries: str = "*"


@dataclass(frozen=True, slots=True)
class Item:
    """One job that an agent is given: the workload, what lookups find, and the right answer as a number."""

    workload: Workload
    facts: Mapping[str, str] = field(default_factory=dict)
    answer: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """What a rule may know of a trial besides its history.

    Attributes:
        item: what the agent was asked to do.
        keyed: whether effects with the same name, arguments and key are one.
    """

    item: Item
    keyed: bool


@dataclass(frozen=True)
class Scenario:
    """A fault that users meet.

    Attributes:
        name: how the command line and results call it.
        question: in a user's words.
        group: the heading it stands under in the matrix.
        items: jobs; a trial runs one, and a cell's number of trials is rounded up to a multiple of them.
        cases: the points.
        rules: what must hold; each returns the anomalies it found.
        keys: whether a key is a dimension of its cells.
        scored: whether its cells say how many of the items passed ("k of 8").
        explores: whether its trials first strike every boundary of an unharmed run, then repeat the worst.
        upgrades: whether some legs run under another version.
        doc: the module's docstring, which is its page.
    """

    name: str
    question: str
    group: str
    items: tuple[Item, ...]
    cases: tuple[Case, ...]
    rules: tuple[Rule, ...]
    keys: Keys = "both"
    scored: bool = False
    explores: bool = False
    upgrades: bool = False
    doc: str = ""

    def item(self, number: int) -> Item:
        """Return the job behind a row's item number; in an exploring scenario that number is a boundary's."""
        return self.items[0] if self.explores else self.items[number]


def order(
    *,
    look_up: bool = False,
    receipt: bool = True,
    then_ask: bool = False,
    on_failure: OnFailure = "ask-once-more",
) -> Item:
    """Return the order job: charge a card and send a receipt.

    Args:
        look_up: look up the price first.
        receipt: send the receipt.
        then_ask: let the user ask a second question later: look up the delivery time.
        on_failure: what the model does with a result that shows no success.
    """
    turns = [(Ask("charge_card", {"order": "order-1", "amount": 42}),)]
    if look_up:
        turns.insert(0, (Ask("lookup", {"fact": "the price of order-1"}),))
    if receipt:
        turns.append((Ask("send_receipt", {"order": "order-1"}),))
    prompt = f"Charge 42 for order-1{', then send the receipt' if receipt else ''}."
    questions = [Question(prompt, tuple(turns), "order-1 is paid.")]
    if then_ask:
        turn = (Ask("lookup", {"fact": "the delivery time of order-1"}),)
        token = "(second question)"
        questions.append(Question(f"When will order-1 arrive? {token}", (turn,), "In {last} days.", token))
    name = "-".join(("order", *("price",) * look_up, *("receipt",) * receipt, *("delivery",) * then_ask))
    facts = {"the price of order-1": "42", "the delivery time of order-1": "3"}
    return Item(Workload(f"{name}-{on_failure}", tuple(questions), on_failure), facts)


def find_scenarios() -> dict[str, Scenario]:
    """Return every scenario below `arena/scenarios/`, by name, in the order of the matrix's groups."""
    found = []
    for module_info in pkgutil.iter_modules(scenarios.__path__, scenarios.__name__ + "."):
        module = importlib.import_module(module_info.name)
        scenario: Scenario = module.SCENARIO
        assert module.__doc__ is not None, f"{module_info.name} needs a docstring: it is the scenario's page"
        object.__setattr__(scenario, "doc", module.__doc__.strip())
        found.append(scenario)
    return {s.name: s for s in sorted(found, key=lambda s: (GROUPS.index(s.group), s.name))}


#: The headings of the matrix: the users' questions, grouped.
GROUPS = (
    "in-flight effects",
    "finished work",
    "approvals",
    "several workers",
    "restarts and deploys",
    "lost writes",
)
