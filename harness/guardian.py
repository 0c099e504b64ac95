"""The guardian: a small process above the harness that lets nothing outlive it.

It is a subreaper, so whatever the harness leaves behind when it dies becomes its child, and is ended. Nothing
else is its business.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from types import FrameType

from harness import kernel

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def guarded(work: Callable[[], int]) -> int:
    """Run `work` in a child process under a guardian; return its exit status.

    If the child is killed, every process that descends from it is ended before this function returns 128 plus
    the signal. If the guardian itself is killed, the child gets SIGTERM. Must be called before any thread runs.
    """
    if not kernel.LINUX:
        return work()
    kernel.become_subreaper()
    guardian = os.getpid()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, _interrupt)
        signal.signal(signal.SIGHUP, _interrupt)
        kernel.die_with_parent(signal.SIGTERM, guardian)
        kernel.become_subreaper()
        return work()

    def forward(signum: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signum)

    for signum in _FORWARDED:
        signal.signal(signum, forward)
    _, status = os.waitpid(child, 0)
    _end_descendants()
    code = os.waitstatus_to_exitcode(status)
    # _exit: what the child has printed or registered is not this process's to flush
    os._exit(code if code >= 0 else 128 - code)


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_descendants() -> None:
    """Kill children until none is left; killing a parent makes its children ours, so this ends with the tree."""
    while True:
        for line in kernel.processes():
            if line.parent == os.getpid() and line.state not in "ZX":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(line.pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        signal.sigtimedwait((), 0.005)
