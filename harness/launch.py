"""Launches legs through fork servers, warm or cold: one path for Python, Node and any other command.

It knows interpreters, environments of processes and descriptors; it knows no framework and no trial.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

StartKind = Literal["warm", "cold"]
_FORKSERVER = Path(__file__).with_name("forkserver.py")
CLIENT_DIRECTORY = Path(__file__).with_name("client")
_READY_LIMIT_S = 180.0
_FORK_LIMIT_S = 60.0


class LaunchError(RuntimeError):
    """A leg could not be started; the text says which command and why."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a target, before the word (`start`, `resume`) is added.

    Attributes:
        argv: the program and its arguments; `argv[0]` is an absolute path.
        interpreter: the file that the kernel must say is executed (`/proc/<pid>/exe`); None if it may be any.
        preload: modules that a warm start has imported; None means that this command only starts cold.
    """

    argv: tuple[str, ...]
    interpreter: str | None = None
    preload: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Launched:
    """A leg that runs: its pid (also its process group and session) and how it was started."""

    pid: int
    kind: StartKind
    hash_seed: str
    why_cold: str | None = None


@dataclass
class _Server:
    process: subprocess.Popen[bytes]
    control: socket.socket
    unfit: str | None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Launcher:
    """Keeps the fork servers of a run. Every server ends when the launcher closes or its process dies.

    Args:
        home: a directory that targets get as `$HOME` while their packages are imported.
        cold: never start warm.
    """

    def __init__(self, home: Path, *, cold: bool = False) -> None:
        self._home = home
        self._cold = cold
        self._servers: dict[tuple[str, tuple[str, ...], str], asyncio.Future[_Server]] = {}

    @property
    def pids(self) -> frozenset[int]:
        """The pids of the fork servers."""
        done = (future for future in self._servers.values() if future.done() and not future.exception())
        return frozenset(future.result().process.pid for future in done)

    async def launch(
        self,
        command: Command,
        word: str,
        environment: Mapping[str, str],
        directory: Path,
        output: tuple[int, int],
        mark: int,
        *,
        cold: bool = False,
    ) -> Launched:
        """Start a leg.

        Args:
            command: what to start.
            word: `start` or `resume`; it also chooses the hash seed of a warm start, since a value of `hash()`
                must not survive a restart.
            environment: all the environment variables that the leg gets.
            directory: its working directory.
            output: descriptors for its standard output and standard error.
            mark: the number by which the kernel shows whose process it is, see `kernel.mark_of`.
            cold: execute a new interpreter even if the command can start warm.

        Raises:
            LaunchError: the command or its fork server cannot be started.
        """
        why_cold = None
        if command.preload is not None and not cold and not self._cold:
            seed = "1" if word == "start" else "2"
            server = await self._server(command.argv[0], command.preload, seed)
            why_cold = server.unfit
            if why_cold is None:
                job = {
                    "kind": "warm",
                    "argv": [*command.argv[1:], word],
                    "env": {**environment, "PYTHONHASHSEED": seed},
                    "cwd": str(directory),
                    "path": [str(CLIENT_DIRECTORY)],
                    "mark": mark,
                }
                reply = await self._request(server, job, output)
                if "pid" in reply:
                    return Launched(reply["pid"], "warm", seed)
                why_cold = server.unfit = reply["unfit"]
        server = await self._server(sys.executable, (), "bare")
        job = {
            "kind": "exec",
            "argv": [*command.argv, word],
            "env": {**environment, "PYTHONPATH": str(CLIENT_DIRECTORY)},
            "cwd": str(directory),
            "mark": mark,
        }
        reply = await self._request(server, job, output)
        return Launched(reply["pid"], "cold", "random", why_cold)

    async def _server(self, python: str, preload: tuple[str, ...], seed: str) -> _Server:
        key = (python, preload, seed)
        if key not in self._servers:
            self._servers[key] = asyncio.ensure_future(self._start(python, preload, seed))
        return await asyncio.shield(self._servers[key])

    async def _start(self, python: str, preload: tuple[str, ...], seed: str) -> _Server:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        environment = base_environment(self._home, Path(python).parent)
        if seed != "bare":
            environment["PYTHONHASHSEED"] = seed
        with there:
            process = subprocess.Popen(
                [python, str(_FORKSERVER), str(there.fileno())],
                env=environment,
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self._home,
            )
        here.setblocking(False)
        here.send(json.dumps({"preload": preload}).encode())
        reply = await _reply(here, _READY_LIMIT_S, f"the fork server of {python}")
        return _Server(process, here, reply["unfit"])

    async def _request(self, server: _Server, job: dict[str, Any], output: tuple[int, int]) -> dict[str, Any]:
        async with server.lock:
            try:
                socket.send_fds(server.control, [json.dumps(job).encode()], list(output))
            except OSError as error:
                raise LaunchError(
                    f"cannot start {job['argv'][0]}: the fork server has ended ({error})"
                ) from error
            return await _reply(server.control, _FORK_LIMIT_S, job["argv"][0])

    def close(self) -> None:
        """End every fork server."""
        for future in self._servers.values():
            if future.done() and not future.cancelled() and future.exception() is None:
                server = future.result()
                server.control.close()
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
            else:
                future.cancel()
        self._servers.clear()


async def _reply(control: socket.socket, limit_s: float, who: str) -> dict[str, Any]:
    try:
        async with asyncio.timeout(limit_s):
            data = await asyncio.get_running_loop().sock_recv(control, 1 << 20)
    except TimeoutError as error:
        raise LaunchError(f"{who} did not answer within {limit_s:g} s") from error
    if not data:
        raise LaunchError(f"{who} ended before it answered")
    found: dict[str, Any] = json.loads(data)
    return found


def base_environment(home: Path, programs: Path) -> dict[str, str]:
    """Return the variables that every target gets: nothing of the harness's own environment, so no secrets."""
    environment = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
    }
    certificate = programs.parent / "one-certificate.pem"
    if certificate.exists():
        # no TLS is used on loopback; reading a whole bundle costs each client 31 ms
        environment["SSL_CERT_FILE"] = str(certificate)
    return environment


def learn_argv(command: Command, modules: Path) -> tuple[str, ...]:
    """Return a command that runs a Python target once and writes the names of the modules it loaded."""
    return (command.argv[0], str(_FORKSERVER), "--learn", str(modules), *command.argv[1:])


def open_output(path: Path) -> int:
    """Return a descriptor that appends to a file."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
