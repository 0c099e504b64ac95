"""Runs trials at once on one event loop in a thread: an executor for `TrialPlan`s.

Its `submit` returns a `concurrent.futures.Future`, so any other executor of trials can take its place. It also
keeps the promise that nothing outlives it: closing ends every live leg, fork server and socket.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import shutil
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

from harness.history import History
from harness.launch import Launcher
from harness.plan import TrialPlan
from harness.trial import Surroundings, run_trial
from harness.world import World


class TrialPool:
    """Runs up to `jobs` trials at once.

    Args:
        jobs: trials at once.
        ceiling_s: seconds from now after which everything is cut.
        cold: start every leg cold.
        scrub: (path of this machine, placeholder) pairs for texts in evidence.
    """

    def __init__(
        self, jobs: int, ceiling_s: float, *, cold: bool = False, scrub: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="plugpull-"))
        self._jobs = jobs
        self._ceiling = time.monotonic() + ceiling_s
        self._cold = cold
        self._scrub = ((str(self.directory), "<run>"), *scrub)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[History]] = set()
        self._surroundings: Surroundings
        self._slots: asyncio.Semaphore
        self._thread = threading.Thread(target=self._loop.run_forever, name="trials", daemon=True)
        self._thread.start()
        self._await(self._open())

    def __enter__(self) -> TrialPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, plan: TrialPlan) -> concurrent.futures.Future[History]:
        """Run a trial as soon as a slot is free; the result is its history."""
        return asyncio.run_coroutine_threadsafe(self._run(plan), self._loop)

    def close(self) -> None:
        """End whatever runs, at once, and give everything back."""
        if self._loop.is_closed():
            return
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _await(self, coroutine: object) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()  # type: ignore[arg-type]  # a coroutine

    async def _open(self) -> None:
        home = self.directory / "home"
        home.mkdir()
        world = World(self.directory)
        await world.start()
        launcher = Launcher(home, cold=self._cold)
        self._surroundings = Surroundings(world, launcher, self.directory, self._ceiling, self._scrub)
        self._slots = asyncio.Semaphore(self._jobs)

    async def _run(self, plan: TrialPlan) -> History:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with self._slots:
                return await run_trial(plan, self._surroundings)
        finally:
            self._tasks.discard(task)

    async def _close(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._surroundings.world.stop()
        self._surroundings.launcher.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
