"""Faults: what is done to a leg at a point. Data only; `harness.trial` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.points import Point

Action = Literal["kill", "stop", "terminate", "lose-answer", "meet"]
Timing = Literal["rest", "once"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Strike when every one of `points` is held.

    Attributes:
        action: `kill` sends SIGKILL to the leg's group; `stop` sends SIGSTOP; `terminate` sends SIGTERM;
            `lose-answer` closes the connection without an answer and leaves the process alone; `meet` is a
            barrier: the request is answered when every other leg of the stage has come to its own, or ended.
        timing: `rest` waits until every thread of the group sleeps, `once` strikes as soon as all is held.
        answer_after_s: for `terminate`: seconds until the held request is answered; None is never.
        kill_after_s: for `terminate`: seconds of grace before SIGKILL.
        batch: the points are calls of one batch, and a framework may make them one by one: strike when all are
            held, or when some are and every thread of the group has come to rest.
        needs: points whose requests must have been answered before the strike.
    """

    points: tuple[Point, ...]
    action: Action = "kill"
    timing: Timing = "rest"
    answer_after_s: float | None = None
    kill_after_s: float = 5.0
    batch: bool = False
    needs: tuple[Point, ...] = ()

    def __str__(self) -> str:
        return "+".join(str(point) for point in self.points) + f"@{self.timing}"
