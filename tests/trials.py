"""Runs small targets, written by a test, in real trials."""

from __future__ import annotations

import concurrent.futures
import os
import secrets
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.faults import Action, Fault, Timing
from harness.history import Event, History
from harness.launch import Command
from harness.model import Ask, Question, Workload
from harness.plan import LegPlan, TrialPlan
from harness.points import parse_point
from harness.pool import TrialPool

CHARGE = "effect:charge_card#1"
WORKLOAD = Workload(
    "order-1",
    (
        Question(
            "Charge 42 for o-1.", ((Ask("charge_card", {"order": "o-1", "amount": 42}),),), "o-1 is paid."
        ),
    ),
)
#: What a preloaded interpreter has imported: enough to be warm.
PRELOAD = ("json", "http.client", "socket")

#: A target that charges the card in both legs and answers.
CHARGES = """
    import plugpull
    plugpull.effect("charge_card", order="o-1", amount=42)
    plugpull.answer("o-1 is paid.")
"""


def kill(point: str, timing: Timing = "rest") -> Fault:
    """Return a fault that kills at a point."""
    return fault(point, "kill", timing)


def fault(point: str, action: Action, timing: Timing = "rest", **options: Any) -> Fault:
    """Return a fault at a point."""
    return Fault((parse_point(point),), action, timing, **options)


@dataclass(frozen=True)
class Trials:
    """Writes targets to a folder and runs them in a pool."""

    pool: TrialPool
    folder: Path

    def target(self, source: str, *, warm: bool = False, name: str = "target.py") -> Command:
        """Write a target and return the command that starts it."""
        path = self.folder / name
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return Command(
            (sys.executable, str(path)), os.path.realpath(sys.executable), PRELOAD if warm else None
        )

    def submit(
        self, stages: Sequence[LegPlan | tuple[LegPlan, ...]], **options: Any
    ) -> concurrent.futures.Future[History]:
        """Run legs, one stage after the other; options are those of a `TrialPlan`."""
        plan = TrialPlan(
            id=f"t{secrets.token_hex(5)}",
            workload=WORKLOAD,
            stages=tuple(stage if isinstance(stage, tuple) else (stage,) for stage in stages),
            environment={"PLUGPULL_MODE": "plain"},
        )
        return self.pool.submit(replace(plan, **options))

    def run(self, stages: Sequence[LegPlan | tuple[LegPlan, ...]], **options: Any) -> History:
        """Run legs and return the history."""
        return self.submit(stages, **options).result(timeout=240)

    def run_once(self, source: str, *faults: Fault, warm: bool = False, **options: Any) -> History:
        """Run a target's start leg only."""
        return self.run([LegPlan("start", self.target(source, warm=warm), faults=faults)], **options)

    def run_twice(self, source: str, *faults: Fault, warm: bool = False, **options: Any) -> History:
        """Run a target's start leg with faults, then its resume leg."""
        command = self.target(source, warm=warm)
        legs = [LegPlan("start", command, faults=faults), LegPlan("resume", command)]
        return self.run(legs, **options)


def errors(history: History) -> list[str]:
    """Return why a trial did not run as designed."""
    return [str(event["reason"]) for event in history.of("error")]


def checks(history: History) -> dict[str, Event]:
    """Return the checks of a trial by their text."""
    return {event["check"]: event for event in history.of("checked")}


def exits(history: History) -> list[tuple[str, int]]:
    """Return how each leg ended."""
    return [(event["how"], event["status"]) for event in history.of("leg-ended")]


def said(history: History, leg: int = 0) -> dict[str, str]:
    """Return what a leg's `hello`s said."""
    facts: dict[str, str] = {}
    for event in history.of("hello", leg=leg):
        facts.update({name[5:]: value for name, value in event.facts.items() if name.startswith("said_")})
    return facts
