"""Progress of a run: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from arena.cells import Shot
from arena.journal import Record
from arena.runner import Watcher

#: Seconds between two plain lines.
_EVERY_S = 10.0


class _Bar:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("trials", total=None)

    def planned(self, total: int) -> None:
        self._progress.update(self._task, total=total)

    def finished(self, shot: Shot, record: Record) -> None:
        del record
        self._progress.update(
            self._task, advance=1, description=f"{shot.adapter.id} {shot.mode} {shot.scenario.name}"
        )


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = self._said = time.monotonic()
        self._total = self._done = 0

    def planned(self, total: int) -> None:
        self._total = total

    def finished(self, shot: Shot, record: Record) -> None:
        del record
        self._done += 1
        now = time.monotonic()
        if now - self._said >= _EVERY_S or self._done == self._total:
            self._said = now
            left = (now - self._began) / self._done * max(0, self._total - self._done)
            self._console.print(
                f"{self._done} of {self._total} trials, about {_duration(left)} left: {shot.label}",
                markup=False,
            )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextlib.contextmanager
def progress_to(console: Console) -> Iterator[Watcher]:
    """Yield a watcher that shows a run's progress on a console."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress)
