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
#: `shared`: the scenario's rules give one verdict without a key and one with it; `calls`: they count calls.
Keys = Literal["both", "calls"]


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault of a leg, with points as text; the timing comes from the cell."""

    points: tuple[str, ...]
    action: Action = "kill"
    answer_after_s: float | None = None
    kill_after_s: float = 5.0

    def fault(self, timing: Timing) -> Fault:
        """Return the harness's fault."""
        return Fault(
            tuple(parse_point(point) for point in self.points),
            self.action,
            timing,
            self.answer_after_s,
            self.kill_after_s,
        )


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg of a case: its word, what strikes it, what a person has decided."""

    word: Literal["start", "resume", "continue"]
    strikes: tuple[Strike, ...] = ()
    decision: Literal["approve", "deny"] | None = None
    only: Only = "always"
    wakes: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One fault point of a scenario.

    Attributes:
        name: the point in words, e.g. `before-effect`; unique within the scenario.
        point: the point as text; the cell's coordinate, together with the timing.
        stages: legs that run one stage after the other; the legs of a stage run at once.
        timings: the variants of the point.
    """

    name: str
    point: str
    stages: tuple[tuple[Leg, ...], ...]
    timings: tuple[Timing, ...] = ("rest", "once")


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
        needs: capabilities a target must have.
        scored: whether its cells say how many of the items passed ("k of 8").
        approval: whether `charge_card` waits for a person.
        doc: the module's docstring, which is its page.
    """

    name: str
    question: str
    group: str
    items: tuple[Item, ...]
    cases: tuple[Case, ...]
    rules: tuple[Rule, ...]
    keys: Keys = "both"
    needs: tuple[str, ...] = ()
    scored: bool = False
    approval: bool = False
    doc: str = ""


def order(
    amount: int = 42, *, name: str = "order-1", receipt: bool = True, on_failure: OnFailure = "ask-once-more"
) -> Item:
    """Return the order job: charge a card, then send a receipt."""
    turns = [(Ask("charge_card", {"order": name, "amount": amount}),)]
    if receipt:
        turns.append((Ask("send_receipt", {"order": name}),))
    prompt = f"Charge {amount} for {name}, then send the receipt."
    question = Question(prompt, tuple(turns), f"{name} is paid.")
    return Item(Workload(f"{name}-{amount}{'-receipt' if receipt else ''}", (question,), on_failure))


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
