"""Runs one trial: starts its legs, carries out their faults, checks them, and closes the history.

Each fault has its own check from kernel facts; a check that fails is recorded and ends the trial, and whoever
reads the history must call it an ERROR. This module judges nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import kernel
from harness.faults import Fault
from harness.history import CHECKS, History
from harness.launch import Launched, Launcher, LaunchError, base_environment, open_output
from harness.plan import LegPlan, TrialPlan
from harness.world import LegWorld, Recorder, Strike, TrialWorld, World

#: All threads of a group must have slept, without running, for this long to be at rest (design: 30 ms).
REST_S = 0.030
#: A target that polls may never rest; it is struck after this long, and the history says so.
REST_LIMIT_S = 2.0
#: After SIGKILL the held connection must close within this long.
CLOSE_LIMIT_S = 1.0
#: What an agent leaves running when it ends by itself may go on for this long before it is ended.
GRACE_S = 5.0
#: An unknown orphan that has ended is reaped after this long: launching a leg never takes it.
ORPHAN_S = 20.0
#: Stopping, continuing and dying of SIGKILL take milliseconds; on a loaded machine, more.
SIGNAL_LIMIT_S = 10.0
#: A request that waits at a barrier is answered at last after this long.
BARRIER_LIMIT_S = 3.0
_STDERR_LINES, _STDERR_CHARACTERS = 20, 1500


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the trials of a run share.

    Attributes:
        world: the servers.
        launcher: the fork servers.
        directory: where trials keep their working directories.
        ceiling: the instant (`time.monotonic()`) at which everything is cut.
        scrub: (text, placeholder) pairs: paths of this machine that must not get into evidence.
        sessions: sessions of all legs of the run.
        orphans: adopted processes that have ended and are no leg's leader, and when they were first seen.
    """

    world: World
    launcher: Launcher
    directory: Path
    ceiling: float
    scrub: tuple[tuple[str, str], ...] = ()
    sessions: set[int] = field(default_factory=set)
    orphans: dict[int, float] = field(default_factory=dict)


class _CheckFailed(Exception):
    """A fault's check failed or a fact is missing: the trial is over."""


@dataclass
class _Leg:
    """A leg that runs, and what the harness knows about it."""

    index: int
    plan: LegPlan
    world: LegWorld
    launched: Launched
    pidfd: int
    began: float
    stderr: Path
    limit_s: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    struck: bool = False
    cut: str | None = None
    finished: bool = False
    status: kernel.Ended | None = None
    waited_s: float = 0.0

    @property
    def group(self) -> int:
        return self.launched.pid


async def run_trial(plan: TrialPlan, surroundings: Surroundings) -> History:
    """Run a trial to its end and return its history.

    The history's last event is `closed` when the trial ran to its end, or `error` when it did not. Whatever
    happens, cancellation included, no process of the trial is left alive.
    """
    trial = surroundings.world.open_trial(plan.id, plan.workload, plan.facts)
    directory = surroundings.directory / plan.id
    run = _Run(plan, surroundings, trial, directory)
    try:
        (directory / "work").mkdir(parents=True)
        (directory / "home").mkdir()
        await run.stages()
        await run.end_all()
        run.read_back()
        await trial.close()
    except _CheckFailed:
        await run.end_all()
        await trial.close()
    except (LaunchError, OSError) as error:
        await run.end_all()
        trial.recorder.add("error", reason=run.scrubbed(f"{type(error).__name__}: {error}"))
        await trial.close()
    finally:
        run.end_now()
        surroundings.world.forget(plan.id)
        shutil.rmtree(directory, ignore_errors=True)
    return trial.recorder.history()


class _Run:
    """The legs of one trial while it runs."""

    def __init__(
        self, plan: TrialPlan, surroundings: Surroundings, trial: TrialWorld, directory: Path
    ) -> None:
        self._plan = plan
        self._around = surroundings
        self._trial = trial
        self._record: Recorder = trial.recorder
        self._directory = directory
        self._legs: list[_Leg] = []
        self._any_strike = False
        self._mark = kernel.new_mark()

    # --- stages --------------------------------------------------------------------------------------

    async def stages(self) -> None:
        """Run every stage; a stage is over when each of its legs has ended or stopped."""
        last_failed = False
        for stage in self._plan.stages:
            if all(leg.only == "if-failed" for leg in stage) and not last_failed:
                continue
            if len(stage) == 1:
                legs = [await self._run_leg(stage[0], ())]
            else:
                legs = await self._run_together(stage)
            last_failed = any(leg.status != kernel.Ended("exited", 0) for leg in legs)
            for leg in legs:
                if leg.cut == "ceiling":
                    raise self._failed("the run's ceiling cut this trial", leg.index)
                if not self._any_strike and any(s.fault.action != "meet" for s in leg.world.strikes):
                    raise self._failed(
                        f"the leg ended before its point was reached: {leg.plan.faults[0]}", leg.index
                    )
                if not self._any_strike and leg.cut == "leg" and self._strikes_planned:
                    raise self._failed("a leg met its own limit before the first fault struck", leg.index)

    @property
    def _strikes_planned(self) -> bool:
        return any(f.action != "meet" for stage in self._plan.stages for leg in stage for f in leg.faults)

    async def _run_together(self, stage: tuple[LegPlan, ...]) -> list[_Leg]:
        started = [await self._start(plan) for plan in stage]
        tasks = [asyncio.ensure_future(self._follow(leg, tuple(started))) for leg in started]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return started

    async def _run_leg(self, plan: LegPlan, others: tuple[_Leg, ...]) -> _Leg:
        if plan.word == "continue":
            assert plan.wakes is not None
            return await self._continue(self._legs[plan.wakes])
        leg = await self._start(plan)
        await self._follow(leg, others)
        return leg

    # --- one leg -------------------------------------------------------------------------------------

    async def _start(self, plan: LegPlan) -> _Leg:
        index = len(self._trial.legs)
        world = await self._trial.open_leg(plan.faults)
        programs = Path(plan.command.argv[0]).parent
        home = self._directory / "home"
        environment = {
            **base_environment(home, programs),
            **self._plan.environment,
            "PLUGPULL_PROVIDER": str(world.path),
            "PLUGPULL_WORKDIR": str(self._directory / "work"),
            "PLUGPULL_PROMPT": self._plan.workload.questions[0].prompt,
            "OPENAI_BASE_URL": world.base_url,
            "OPENAI_API_KEY": "sk-plugpull-no-key-is-needed",
            **plan.environment,
        }
        stderr = self._directory / f"leg-{index}.stderr"
        output = open_output(stderr)
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            launched = await self._around.launcher.launch(
                plan.command,
                plan.word,
                environment,
                self._directory / "work",
                (null, output),
                self._mark,
                cold=self._plan.cold,
            )
        except BaseException:
            world.begun.set()  # whoever called all the same must not keep the socket from being drained
            raise
        finally:
            os.close(output)
            os.close(null)
        leg = _Leg(
            index=index,
            plan=plan,
            world=world,
            launched=launched,
            pidfd=kernel.open_pidfd(launched.pid),
            began=time.monotonic(),
            stderr=stderr,
            limit_s=self._plan.leg_limit_s,
        )
        self._around.sessions.add(launched.pid)
        self._legs.append(leg)
        asyncio.get_running_loop().add_reader(leg.pidfd, leg.ended.set)
        self._record.add(
            "leg-started",
            index,
            word=plan.word,
            pid=launched.pid,
            start=launched.kind,
            hash_seed=launched.hash_seed,
            why_cold=launched.why_cold,
            version=plan.audit.version if plan.audit else None,
            environment={k: v for k, v in plan.environment.items() if k.startswith("PLUGPULL_")} or None,
        )
        world.begun.set()
        return leg

    async def _follow(self, leg: _Leg, together: tuple[_Leg, ...]) -> None:
        """Wait until a leg has ended or stopped, carrying out its faults and its limits meanwhile."""
        strikes = [
            asyncio.ensure_future(self._when_ready(leg, strike, together)) for strike in leg.world.strikes
        ]
        ends = asyncio.ensure_future(leg.ended.wait())
        stops = asyncio.ensure_future(leg.stopped.wait())
        try:
            pending: set[asyncio.Future[Any]] = {ends, stops, *strikes}
            while not (leg.ended.is_set() or leg.stopped.is_set()):
                left = min(leg.began + leg.limit_s + leg.waited_s, self._around.ceiling) - time.monotonic()
                if left <= 0:
                    self._cut(leg)
                    break
                done, _ = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {ends, stops}:
                    pending.discard(task)
                    task.result()
            for strike, task in zip(leg.world.strikes, strikes, strict=True):
                if strike.ready.is_set() and not leg.stopped.is_set():
                    await task
        finally:
            for other in (ends, stops, *strikes):
                other.cancel()
            await asyncio.gather(ends, stops, *strikes, return_exceptions=True)
        if not leg.stopped.is_set():
            await self._finish(leg)

    def _cut(self, leg: _Leg) -> None:
        leg.cut = "ceiling" if time.monotonic() >= self._around.ceiling else "leg"
        self._record.add(
            "limit",
            leg.index,
            which=leg.cut,
            seconds=round(time.monotonic() - leg.began, 3),
            limit_s=leg.limit_s,
        )
        kernel.send_group(leg.group, signal.SIGKILL)

    async def _finish(self, leg: _Leg) -> None:
        """End what is left of a leg and record how it ended.

        The leader stays unreaped until its group has been signalled, so a signal cannot reach a recycled group.
        """
        if leg.finished:
            return
        if leg.cut is not None:
            kernel.send_group(leg.group, signal.SIGKILL)
        async with asyncio.timeout(SIGNAL_LIMIT_S):
            await leg.ended.wait()
        leg.finished = True
        seconds = time.monotonic() - leg.began
        asyncio.get_running_loop().remove_reader(leg.pidfd)
        leg.status = kernel.peek_ended(leg.pidfd)
        by_itself = leg.cut is None and not leg.struck
        await self._end_what_is_left(leg, GRACE_S if by_itself else 0.0)
        cpu = kernel.reap(leg.launched.pid)
        os.close(leg.pidfd)
        self._around.sessions.discard(leg.launched.pid)
        if leg.status is None:
            raise self._failed("the kernel did not tell how the leg ended", leg.index)
        text = self._stderr(leg)
        self._record.add(
            "leg-ended",
            leg.index,
            how=leg.status.how,
            status=leg.status.status,
            cpu_s=round(cpu, 4),
            seconds=round(seconds, 4),
            state_bytes=None if self._plan.saves_elsewhere else _bytes_in(self._directory / "work"),
            stderr=text if text and leg.status != kernel.Ended("exited", 0) else None,
        )

    async def _end_what_is_left(self, leg: _Leg, grace_s: float) -> None:
        until = time.monotonic() + grace_s
        mine: dict[int, kernel.ProcessLine] = {}
        while True:
            left = self._left_behind(leg)
            for line in left:
                mine.setdefault(line.pid, line)
            alive = [line for line in left if line.state not in "ZX"]
            over = time.monotonic() >= until
            if over or not alive:
                kernel.send_group(leg.group, signal.SIGKILL)
                for line in alive:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(line.pid, signal.SIGKILL)
            for line in left:
                if line.parent == os.getpid() and line.state in "ZX":
                    with contextlib.suppress(ChildProcessError):
                        kernel.reap(line.pid)
            if not left:
                break
            if time.monotonic() > until + SIGNAL_LIMIT_S:
                raise self._failed("a process of the leg could not be ended", leg.index)
            await asyncio.sleep(0.005 if over else 0.02)
        ended_by = "harness" if grace_s == 0.0 or time.monotonic() >= until else "itself"
        for line in mine.values():
            self._record.add(
                "left-behind",
                leg.index,
                pid=line.pid,
                group=line.group,
                in_group=line.group == leg.group,
                ended=ended_by,
            )

    def _left_behind(self, leg: _Leg) -> list[kernel.ProcessLine]:
        """Return the processes of a leg besides its leader: its group and session, and those who left them.

        Who left is found by the trial's mark.
        """
        lines = kernel.processes()
        self._reap_orphans(lines)
        leaders = {other.launched.pid for other in self._legs}
        found = {
            line.pid: line
            for line in lines
            if line.pid not in leaders and leg.launched.pid in (line.group, line.session)
        }
        children: dict[int, list[kernel.ProcessLine]] = {}
        for line in lines:
            children.setdefault(line.parent, []).append(line)
        others = {other.group for other in self._legs if other is not leg and not other.finished}
        known = self._around.launcher.pids | leaders
        queue = [line for line in children.get(os.getpid(), ()) if line.pid not in known]
        while queue:
            line = queue.pop()
            if line.pid in leaders or others & {line.group, line.session}:
                continue
            if line.pid in found or kernel.mark_of(line.pid) == self._mark:
                found[line.pid] = line
                queue.extend(children.get(line.pid, ()))
        return list(found.values())

    def _reap_orphans(self, lines: tuple[kernel.ProcessLine, ...]) -> None:
        """Reap, by pid, what legs left to the harness and has ended since.

        A leg that has just been launched is not known yet when it ends at once; so an orphan is only reaped when
        it has stayed unknown for longer than any launch takes.
        """
        orphans, now = self._around.orphans, time.monotonic()
        ended = {
            line.pid
            for line in lines
            if line.parent == os.getpid()
            and line.state in "ZX"
            and line.pid not in self._around.sessions
            and line.pid not in self._around.launcher.pids
        }
        for pid in set(orphans) - ended:
            del orphans[pid]
        for pid in ended:
            if now - orphans.setdefault(pid, now) > ORPHAN_S:
                del orphans[pid]
                with contextlib.suppress(ChildProcessError):
                    kernel.reap(pid)

    def _stderr(self, leg: _Leg) -> str:
        try:
            text = leg.stderr.read_text(errors="replace")
        except OSError:
            return ""
        # scrubbed before it is cut, since a path that is cut in two is no longer found
        tail = self.scrubbed("\n".join(text.strip().splitlines()[-_STDERR_LINES:]))
        if len(tail) > _STDERR_CHARACTERS:
            tail = "...(truncated)" + tail[-_STDERR_CHARACTERS:]
        return tail

    def scrubbed(self, text: str) -> str:
        """Return text without the paths of this machine."""
        own = ((str(self._directory / "work"), "<workdir>"), (str(self._directory), "<trial>"))
        for path, placeholder in (*own, *self._around.scrub):
            text = text.replace(path, placeholder)
        return text

    # --- faults --------------------------------------------------------------------------------------

    async def _when_ready(self, leg: _Leg, strike: Strike, together: tuple[_Leg, ...]) -> None:
        fault = strike.fault
        if fault.batch:
            await self._batch_ready(leg, strike)
        await strike.ready.wait()
        if fault.action == "meet":
            await self._meet(leg, strike, together)
            return
        rested, rest_s = await self._rest(leg, fault)
        self._any_strike = True
        if fault.action == "kill":
            await self._kill(leg, strike, rested, rest_s)
        elif fault.action == "stop":
            await self._stop(leg, strike, rested, rest_s)
        elif fault.action == "terminate":
            await self._terminate(leg, strike, rested, rest_s)
        else:
            self._check_open(leg, strike)
            self._struck(leg, fault, None, rested, rest_s)
            for hold in strike.holds:
                hold.release(drop=True)

    async def _batch_ready(self, leg: _Leg, strike: Strike) -> None:
        """Return when a batch is as held as it gets: all of it, or some and the group sleeps."""
        await strike.some.wait()
        last, since = None, time.monotonic()
        while not strike.complete:
            await asyncio.sleep(REST_S / 3)
            seen, now = kernel.activity(kernel.group_members(leg.group)), time.monotonic()
            if seen is None or seen != last or not strike.needs_met:
                last, since = seen, now
            elif now - since >= REST_S:
                break
        strike.ready.set()

    async def _rest(self, leg: _Leg, fault: Fault) -> tuple[bool | None, float | None]:
        if fault.timing == "once":
            return None, None
        began = time.monotonic()
        members = kernel.group_members(leg.group)
        last, since = kernel.activity(members), time.monotonic()
        while True:
            await asyncio.sleep(REST_S / 3)
            now = time.monotonic()
            seen = kernel.activity(members)
            if seen is None or seen != last:
                last, since = seen, now
                members = kernel.group_members(leg.group)
            elif now - since >= REST_S:
                if kernel.group_members(leg.group) == members:
                    return True, round(now - began, 4)
                members = kernel.group_members(leg.group)
                last, since = None, now
            if now - began > REST_LIMIT_S or leg.ended.is_set():
                return False, round(now - began, 4)

    def _struck(
        self, leg: _Leg, fault: Fault, signum: int | None, rested: bool | None, rest_s: float | None
    ) -> None:
        self._record.add(
            "struck",
            leg.index,
            action=fault.action,
            timing=fault.timing,
            points=[str(point) for point in fault.points],
            signal=signum,
            group=leg.group,
            rested=rested,
            rest_s=rest_s,
        )

    def _check(self, leg: _Leg, check: str, ok: bool, **facts: Any) -> None:
        self._record.add("checked", leg.index, check=check, ok=ok, **facts)
        if not ok:
            raise self._failed(f"check failed: {CHECKS[check]}", leg.index)

    def _failed(self, reason: str, leg: int | None) -> _CheckFailed:
        self._record.add("error", leg, reason=reason)
        return _CheckFailed(reason)

    def _check_open(self, leg: _Leg, strike: Strike) -> None:
        alive = not leg.ended.is_set() and kernel.peek_ended(leg.pidfd) is None
        still_open = not any(hold.gone.is_set() for hold in strike.holds)
        self._check(leg, "open", alive and still_open, alive=alive, open=still_open)

    def _check_holders(self, leg: _Leg, strike: Strike) -> None:
        """Check that everyone who has the other end of a held connection open is in the leg's group."""
        expected = leg.plan.command.interpreter
        for hold in strike.holds:
            try:
                inode = self._around.world.diagnosis.peer_inode(hold.connection)
            except (kernel.FactMissing, OSError) as error:
                raise self._failed(
                    f"missing fact: who holds the held request ({error})", leg.index
                ) from error
            found = kernel.holders(inode)
            self._check(
                leg,
                "holders",
                bool(found) and all(member.group == leg.group for member in found),
                holders=[[member.pid, member.group] for member in found],
                group=leg.group,
            )
        if expected is not None:
            executable = kernel.executable(leg.launched.pid)
            if executable is None:
                raise self._failed("missing fact: what the agent executes", leg.index)
            self._check(
                leg,
                "interpreter",
                executable == expected,
                executable=Path(executable).name,
            )

    async def _kill(self, leg: _Leg, strike: Strike, rested: bool | None, rest_s: float | None) -> None:
        self._check_open(leg, strike)
        self._check_holders(leg, strike)
        leg.struck = True
        killed_at = time.monotonic()
        kernel.send_group(leg.group, signal.SIGKILL)
        self._struck(leg, strike.fault, int(signal.SIGKILL), rested, rest_s)
        await self._check_killed(leg)
        for hold in strike.holds:
            try:
                async with asyncio.timeout(max(0.0, killed_at + CLOSE_LIMIT_S - time.monotonic())):
                    await hold.gone.wait()
            except TimeoutError:
                seconds = None
            else:
                seconds = round(time.monotonic() - killed_at, 4)
            self._check(
                leg,
                "closed",
                seconds is not None,
                point=str(hold.point),
                seconds=seconds,
            )

    async def _check_killed(self, leg: _Leg) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SIGNAL_LIMIT_S):
                await leg.ended.wait()
        ended = kernel.peek_ended(leg.pidfd)
        self._check(
            leg,
            "killed",
            ended is not None and ended.killed_by_sigkill,
            how=ended.how if ended else None,
            status=ended.status if ended else None,
        )

    async def _stop(self, leg: _Leg, strike: Strike, rested: bool | None, rest_s: float | None) -> None:
        self._check_open(leg, strike)
        self._check_holders(leg, strike)
        leg.struck = True
        kernel.send_group(leg.group, signal.SIGSTOP)
        self._struck(leg, strike.fault, int(signal.SIGSTOP), rested, rest_s)
        stopped = await _until(lambda: kernel.peek_stopped(leg.pidfd))
        states = {line.state for line in kernel.processes() if line.group == leg.group}
        self._check(
            leg,
            "stopped",
            stopped and states <= {"T"},
            states=sorted(states),
            stopped=stopped,
        )
        leg.stopped.set()

    async def _continue(self, leg: _Leg) -> _Leg:
        """Wake a stopped leg, answer what it waits for, and follow it to its end."""
        strike = next(s for s in leg.world.strikes if s.fault.action == "stop")
        still_open = not any(hold.gone.is_set() for hold in strike.holds)
        self._check(leg, "still-open", still_open)
        kernel.send_group(leg.group, signal.SIGCONT)
        self._record.add("struck", leg.index, action="continue", signal=int(signal.SIGCONT), group=leg.group)
        continued = await _until(lambda: kernel.take_continued(leg.pidfd))
        self._check(leg, "continued", continued)
        leg.stopped.clear()
        leg.began = time.monotonic()
        for hold in strike.holds:
            hold.release()
        ended = False
        left = min(leg.limit_s, self._around.ceiling - time.monotonic())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left)):
                ended = await leg.ended.wait()
        if not ended:
            self._cut(leg)
        leg.struck = False
        await self._finish(leg)
        return leg

    async def _terminate(self, leg: _Leg, strike: Strike, rested: bool | None, rest_s: float | None) -> None:
        fault = strike.fault
        self._check_open(leg, strike)
        self._check_holders(leg, strike)
        began = time.monotonic()
        kernel.send_group(leg.group, signal.SIGTERM)
        self._struck(leg, fault, int(signal.SIGTERM), rested, rest_s)

        async def ended_by(seconds: float) -> bool:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, began + seconds - time.monotonic())):
                    await leg.ended.wait()
            return leg.ended.is_set()

        if fault.answer_after_s is not None and not await ended_by(fault.answer_after_s):
            for hold in strike.holds:
                hold.release()
        if not await ended_by(fault.kill_after_s):
            leg.struck = True
            kernel.send_group(leg.group, signal.SIGKILL)
            self._record.add("struck", leg.index, action="kill", signal=int(signal.SIGKILL), group=leg.group)
            await self._check_killed(leg)
        ended = kernel.peek_ended(leg.pidfd)
        self._check(
            leg,
            "terminated",
            ended is not None,
            how=ended.how if ended else None,
            status=ended.status if ended else None,
            seconds=round(time.monotonic() - began, 4),
        )

    async def _meet(self, leg: _Leg, strike: Strike, together: tuple[_Leg, ...]) -> None:
        """Hold a request until each other leg of the stage has come to its own barrier, has ended, or time is up."""
        others = [other for other in together if other is not leg]
        waits = [
            asyncio.ensure_future(event.wait())
            for other in others
            for event in (other.ended, *(s.ready for s in other.world.strikes if s.fault.action == "meet"))
        ]
        done, _ = await asyncio.wait(waits, timeout=BARRIER_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        met = any(
            s.ready.is_set() for other in others for s in other.world.strikes if s.fault.action == "meet"
        )
        reason = "met" if met else "other-ended" if done else "timeout"
        self._record.add("barrier", leg.index, reason=reason)
        for hold in strike.holds:
            hold.release()

    # --- the end -------------------------------------------------------------------------------------

    async def end_all(self) -> None:
        """End every leg that still runs and record it."""
        for leg in self._legs:
            if not leg.finished:
                kernel.send_group(leg.group, signal.SIGKILL)
                leg.struck = True
                await self._finish(leg)

    def read_back(self) -> None:
        """Record the mode as it is found in the store; a store that cannot be read is a fact that is missing."""
        readback = self._plan.readback
        if readback is None:
            return
        file = self._directory / "work" / readback.file
        try:
            with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
                row = connection.execute(f"PRAGMA {readback.sqlite_pragma}").fetchone()
        except sqlite3.Error as error:
            raise self._failed(
                f"missing fact: the mode as found in {readback.file} ({error})", None
            ) from error
        self._record.add("mode-read", pragma=readback.sqlite_pragma, asked=readback.expect, found=str(row[0]))

    def end_now(self) -> None:
        """End every leg at once, without waiting for anything but the kernel: the way out when cancelled."""
        for leg in self._legs:
            if not leg.finished:
                kernel.send_group(leg.group, signal.SIGKILL)
                with contextlib.suppress(ValueError, OSError):
                    asyncio.get_running_loop().remove_reader(leg.pidfd)
                with contextlib.suppress(ChildProcessError):
                    kernel.reap(leg.launched.pid)
                os.close(leg.pidfd)
                leg.finished = True


async def _until(true: Any) -> bool:
    end = time.monotonic() + SIGNAL_LIMIT_S
    while time.monotonic() < end:
        if true():
            return True
        await asyncio.sleep(0.001)
    return False


def _bytes_in(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
