"""Facts that only the kernel can give, and the kernel calls that watch and end processes.

Everything that depends on the kernel stands here. Linux is complete. On macOS only the caller's pid is
written (`LOCAL_PEERPID`); a fact that a platform cannot report raises `FactMissing`, and whoever asked
turns that into ERROR, never into a verdict. This module knows nothing of legs, trials or faults.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import signal
import socket
import struct
import sys
from asyncio.trsock import TransportSocket
from dataclasses import dataclass

#: A connection: of our own, or as asyncio shows one.
Connection = socket.socket | TransportSocket
LINUX = sys.platform == "linux"
#: The upper half of every mark: no limit that anybody sets by hand looks like it.
_MARK = 0x706C7567
_RLIMIT_LOCKS = 10
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_UDIAG_SHOW_PEER = 4
_UNIX_DIAG_PEER = 2
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = 0xFFFFFFFF
_MACOS_SOL_LOCAL = 0
_MACOS_LOCAL_PEERPID = 2


class FactMissing(Exception):
    """The platform does not report a fact that a check needs. Its text names the fact."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, as `waitid` says: `exited` with a code, or `killed` (or `dumped`) by a signal."""

    how: str
    status: int

    @property
    def killed_by_sigkill(self) -> bool:
        """Whether SIGKILL ended the process."""
        return self.how == "killed" and self.status == signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Member:
    """A live process and the group it is in."""

    pid: int
    group: int


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def become_subreaper() -> None:
    """Adopt every orphan among this process's descendants. Without this call orphans go to init."""
    if LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signum: int, parent: int) -> None:
    """Ask the kernel for `signum` when the parent dies, and take it at once if `parent` is dead already."""
    if LINUX:
        _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def open_pidfd(pid: int) -> int:
    """Return a descriptor that names this process and never a later one with the same number."""
    if not LINUX:
        raise FactMissing("this platform has no pidfd")
    return os.pidfd_open(pid)


def peek_ended(pidfd: int) -> Ended | None:
    """Return how a child ended, leaving it unreaped, or None while it lives."""
    found = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    how = {os.CLD_EXITED: "exited", os.CLD_KILLED: "killed", os.CLD_DUMPED: "dumped"}
    return Ended(how.get(found.si_code, f"code-{found.si_code}"), found.si_status)


def peek_stopped(pidfd: int) -> bool:
    """Return whether a child has been stopped by SIGSTOP and the kernel reports it."""
    found = os.waitid(os.P_PIDFD, pidfd, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return found is not None and found.si_code == os.CLD_STOPPED


def take_continued(pidfd: int) -> bool:
    """Return whether a child has been continued by SIGCONT, and take the report."""
    found = os.waitid(os.P_PIDFD, pidfd, os.WCONTINUED | os.WNOHANG)
    return found is not None and found.si_code == os.CLD_CONTINUED


def reap(pid: int) -> float:
    """Reap a child that has ended and return the CPU seconds of it and of those it waited for."""
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime


def send_group(group: int, signum: int) -> None:
    """Send a signal to a process group; a group that is gone already is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signum)


# --- who is at the other end of a connection ---------------------------------------------------------


def peer_pid(connection: Connection) -> int:
    """Return the pid that connected a Unix socket (`SO_PEERCRED`; `LOCAL_PEERPID` on macOS)."""
    if LINUX:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[0])
    if sys.platform == "darwin":
        raw = connection.getsockopt(_MACOS_SOL_LOCAL, _MACOS_LOCAL_PEERPID, 4)
        return int(struct.unpack("i", raw)[0])
    raise FactMissing(f"{sys.platform} does not report the pid of a caller")


class SocketDiagnosis:
    """One `sock_diag` netlink socket: asks the kernel for the inode of a connection's other end.

    An exact query costs tens of microseconds, whatever the number of sockets on the machine.
    """

    def __init__(self) -> None:
        if not LINUX:
            raise FactMissing(f"{sys.platform} does not report who holds a connection's other end")
        netlink_sock_diag = 4
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, netlink_sock_diag
        )
        self._socket.settimeout(2)
        self._sequence = 0

    def close(self) -> None:
        """Give the netlink socket back."""
        self._socket.close()

    def peer_inode(self, connection: Connection) -> int:
        """Return the inode of the other end of a Unix or a TCP connection.

        Raises:
            FactMissing: the kernel knows no such other end (it was closed, or is on another machine).
        """
        if connection.family == socket.AF_UNIX:
            return self._unix_peer(os.fstat(connection.fileno()).st_ino)
        return self._inet_inode(connection)

    def _ask(self, request: bytes) -> bytes:
        self._sequence += 1
        header = struct.pack(
            "=IHHII", 16 + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, self._sequence, 0
        )
        self._socket.send(header + request)
        while True:
            reply = self._socket.recv(8192)
            _, kind, _, sequence, _ = struct.unpack_from("=IHHII", reply)
            if sequence != self._sequence:
                continue
            if kind == _NLMSG_ERROR:
                code = -struct.unpack_from("=i", reply, 16)[0]
                raise FactMissing(f"sock_diag: {os.strerror(code)}")
            return reply[16:]

    def _unix_peer(self, inode: int) -> int:
        reply = self._ask(
            struct.pack(
                "=BBHIIIII",
                socket.AF_UNIX,
                0,
                0,
                _ALL_STATES,
                inode,
                _UDIAG_SHOW_PEER,
                _NO_COOKIE,
                _NO_COOKIE,
            )
        )
        offset = 16
        while offset + 4 <= len(reply):
            length, kind = struct.unpack_from("=HH", reply, offset)
            if kind == _UNIX_DIAG_PEER:
                peer = int(struct.unpack_from("=I", reply, offset + 4)[0])
                if peer:
                    return peer
            offset += max(4, (length + 3) & ~3)
        raise FactMissing("sock_diag: the connection has no other end any more")

    def _inet_inode(self, connection: Connection) -> int:
        here, there = connection.getsockname(), connection.getpeername()
        family = connection.family
        identity = struct.pack(
            "!HH16s16s",
            there[1],
            here[1],
            socket.inet_pton(family, there[0]).ljust(16, b"\0"),
            socket.inet_pton(family, here[0]).ljust(16, b"\0"),
        ) + struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
        reply = self._ask(struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + identity)
        inode = int(struct.unpack_from("=I", reply, 68)[0])
        if not inode:
            raise FactMissing("sock_diag: the caller has closed its end")
        return inode


def holders(inode: int) -> tuple[Member, ...]:
    """Return every process that has the socket with this inode open, by a scan of `/proc/*/fd`."""
    wanted = f"socket:[{inode}]"
    found: list[Member] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            descriptors = os.listdir(f"/proc/{name}/fd")
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                if os.readlink(f"/proc/{name}/fd/{descriptor}") == wanted:
                    found.append(Member(int(name), os.getpgid(int(name))))
                    break
            except OSError:
                continue
    return tuple(found)


# --- what processes there are ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """The part of `/proc/<pid>/stat` that tells who belongs to whom."""

    pid: int
    state: str
    parent: int
    group: int
    session: int


def process_line(pid: int) -> ProcessLine | None:
    """Return a process's line, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    state, parent, group, session = text[text.rindex(b")") + 2 :].split(b" ", 4)[:4]
    return ProcessLine(pid, state.decode(), int(parent), int(group), int(session))


def processes() -> tuple[ProcessLine, ...]:
    """Return a line for each process of the machine, zombies included."""
    lines = (process_line(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return tuple(line for line in lines if line is not None)


def group_members(group: int) -> tuple[int, ...]:
    """Return the pids of a process group that have not ended yet."""
    return tuple(line.pid for line in processes() if line.group == group and line.state not in "ZX")


def executable(pid: int) -> str | None:
    """Return the path of the file a process executes, or None when the kernel does not tell."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def new_mark() -> int:
    """Return a number that marks the processes of one trial."""
    return _MARK << 32 | secrets.randbits(32)


def carry_mark(mark: int) -> None:
    """Mark this process and whatever it will start. `harness.forkserver` does the same on its own."""
    resource.setrlimit(_RLIMIT_LOCKS, (mark, mark))


def mark_of(pid: int) -> int | None:
    """Return the mark that a process carries, or None.

    It is the limit on file locks (`RLIMIT_LOCKS`), which Linux has ignored since 2.4.25. Unlike an environment, a
    group or a session, it survives fork, exec, `setsid` and a change of directory, and is read from outside.
    """
    try:
        with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
            for line in file:
                if line.startswith("Max file locks"):
                    limit = line.split()[3]
                    found = int(limit) if limit.isdigit() else 0
                    return found if found >> 32 == _MARK else None
    except OSError:
        pass
    return None


def activity(pids: tuple[int, ...]) -> tuple[tuple[int, str], ...] | None:
    """Return (thread id, context switches) of every thread, or None if a thread is not asleep.

    Two equal answers, some time apart, mean that no thread ran in between: a thread that ran has switched.
    """
    seen: list[tuple[int, str]] = []
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return None
        for thread in threads:
            try:
                with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
                    text = file.read()
            except OSError:
                return None
            if text.partition("State:\t")[2][:1] not in ("S", "I"):
                return None
            seen.append((int(thread), text[text.index("voluntary_ctxt_switches:") :]))
    return tuple(seen)


def filesystem_of(path: str) -> str:
    """Return the type of the file system that `path` is on, `unknown` where the kernel does not tell."""
    best, kind = "", "unknown"
    try:
        with open("/proc/self/mounts", encoding="utf-8") as file:
            for line in file:
                _, mount, this_kind = line.split(" ", 3)[:3]
                inside = path == mount or path.startswith(mount.rstrip("/") + "/")
                if inside and len(mount) >= len(best):
                    best, kind = mount, this_kind
    except OSError:
        pass
    return kind
