"""Engine servers that targets need (a database, a workflow server): one for a run, outside the killed groups.

An engine is a program of the adapter's. It starts a server that listens on loopback or on a Unix socket in its
own directory, prints one line of JSON with the server's `address` once the server is healthy, and ends it when its
standard input ends. Whatever it leaves behind is ended by its mark. This module knows no framework and no trial.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from harness import kernel
from harness.launch import base_environment

#: An engine that is not healthy after this long has failed.
READY_LIMIT_S = 120.0
#: An engine whose standard input has ended may take this long to end its server.
END_LIMIT_S = 10.0
_STDERR_LINES = 8


class EngineFailed(RuntimeError):
    """An engine server did not become healthy; the text names it and says what it printed."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine server that runs: its name, where it listens, and the mark of its processes."""

    name: str
    address: str
    mark: int
    process: subprocess.Popen[bytes]
    directory: Path


class Engines:
    """The engine servers of a run. Closing ends all of them, and so does the harness's death (the guardian)."""

    def __init__(self) -> None:
        self._running: list[Engine] = []

    def __enter__(self) -> Engines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, name: str, argv: tuple[str, ...], limit_s: float = READY_LIMIT_S) -> Engine:
        """Start an engine and return it once it says that it is healthy.

        Args:
            name: names it in errors, e.g. `temporal of pydantic_ai`.
            argv: the interpreter and the program, as absolute paths.
            limit_s: seconds until it must be healthy.

        Raises:
            EngineFailed: it ended, said something else, or was not healthy in time.
        """
        # not below the run's own directory: a database server may refuse to run as root, and that one is root's only
        directory = Path(tempfile.mkdtemp(prefix="plugpull-engine-"))
        directory.chmod(0o711)
        data = directory / "data"
        data.mkdir()
        mark = kernel.new_mark()
        environment = base_environment(directory, Path(argv[0]).parent)
        # a database server may have to make itself a user first
        environment["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
        environment["PLUGPULL_ENGINE_DIR"] = str(data)
        output = directory / "stdout"
        with output.open("wb") as out, (directory / "stderr").open("wb") as err:
            process = subprocess.Popen(
                argv,
                env=environment,
                cwd=data,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,
                # marked before its first instruction, so that no child of it can be missed
                preexec_fn=lambda: kernel.carry_mark(mark),
            )
        engine = Engine(name, "", mark, process, directory)
        try:
            address = _address(engine, output, limit_s)
        except BaseException:
            _end(engine)
            raise
        engine = Engine(name, address, mark, process, directory)
        self._running.append(engine)
        return engine

    def close(self) -> None:
        """End every engine, first by asking, then by SIGKILL to all that carry its mark."""
        while self._running:
            _end(self._running.pop())


def _address(engine: Engine, output: Path, limit_s: float) -> str:
    until = time.monotonic() + limit_s
    while True:
        ended = engine.process.poll()
        line, complete, _ = output.read_text(encoding="utf-8", errors="replace").partition("\n")
        if complete:
            try:
                address = json.loads(line)["address"]
            except (ValueError, TypeError, KeyError):
                raise EngineFailed(
                    f'engine {engine.name}: its first line must be JSON like {{"address": "127.0.0.1:7233"}}, '
                    f"not {line[:80]!r}"
                ) from None
            return str(address)
        if ended is not None:
            raise EngineFailed(f"engine {engine.name}: ended with status {ended}{_said(engine)}")
        if time.monotonic() > until:
            raise EngineFailed(f"engine {engine.name}: not healthy after {limit_s:g} s{_said(engine)}")
        time.sleep(0.02)


def _said(engine: Engine) -> str:
    text = (engine.directory / "stderr").read_text(encoding="utf-8", errors="replace").strip()
    last = "\n".join(text.splitlines()[-_STDERR_LINES:])
    return f"; it said:\n{last}" if last else " and said nothing"


def _end(engine: Engine) -> None:
    stdin: IO[bytes] | None = engine.process.stdin
    if stdin is not None:
        with contextlib.suppress(OSError):
            stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        engine.process.wait(END_LIMIT_S)
    while left := _marked(engine.mark):
        for line in left:
            if line.state not in "ZX":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(line.pid, signal.SIGKILL)
            elif line.parent == os.getpid() and line.pid != engine.process.pid:
                with contextlib.suppress(ChildProcessError):
                    kernel.reap(line.pid)
        engine.process.poll()
        time.sleep(0.005)
    engine.process.wait()
    shutil.rmtree(engine.directory, ignore_errors=True)


def _marked(mark: int) -> list[kernel.ProcessLine]:
    return [line for line in kernel.processes() if kernel.mark_of(line.pid) == mark]
