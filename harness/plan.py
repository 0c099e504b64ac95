"""What a trial is to do, as data: its legs, their faults, its limits. It knows no scenario and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.faults import Fault
from harness.launch import Command
from harness.model import Workload

Only = Literal["always", "if-failed"]


@dataclass(frozen=True, slots=True)
class Audit:
    """What the harness itself has read about a leg's environment, and what the target must agree with."""

    version: str
    package: str


@dataclass(frozen=True, slots=True)
class Readback:
    """A mode that can be read back from what a run left: an SQLite file's pragma, and what it must be."""

    file: str
    sqlite_pragma: str
    expect: str


@dataclass(frozen=True, slots=True)
class LegPlan:
    """One process of the agent.

    Attributes:
        word: `start` or `resume`; `continue` wakes an earlier leg that was stopped.
        faults: what strikes it.
        environment: variables besides those that every leg gets.
        command: how to start it; legs of one trial may run different versions.
        audit: what its version must be; None for a command that the harness knows nothing of.
        only: `if-failed` skips the leg unless the one before it ended with another status than 0.
        wakes: for `continue`: the index of the stopped leg.
    """

    word: str
    command: Command
    audit: Audit | None = None
    faults: tuple[Fault, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    only: Only = "always"
    wakes: int | None = None


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One trial.

    Attributes:
        id: names the trial; part of its addresses.
        workload: what the scripted model will ask for; the first question's prompt is the user's input.
        facts: what `lookup` knows.
        stages: legs that run one stage after the other; the legs of a stage run at once.
        environment: variables that every leg gets, e.g. the mode.
        leg_limit_s: seconds that each leg may take.
        cold: execute a new interpreter for each leg.
        readback: what the harness reads back of the mode when the legs have ended.
        saves_elsewhere: the run is saved in an engine server, so the bytes in the working directory say nothing.
    """

    id: str
    workload: Workload
    stages: tuple[tuple[LegPlan, ...], ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    leg_limit_s: float = 60.0
    cold: bool = False
    readback: Readback | None = None
    saves_elsewhere: bool = False
