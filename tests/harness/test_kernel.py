"""Facts from the kernel, each looked at on processes and sockets of this test."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from harness import kernel


@contextlib.contextmanager
def child(
    source: str, *, fds: tuple[int, ...] = (), apart: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a child until the block ends; it says `ready` on its standard output first."""
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        pass_fds=fds,
        start_new_session=apart,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"


def eventually(true: Callable[[], bool], limit_s: float = 30) -> bool:
    """Return whether something comes true within a generous limit."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.005)
    return False


def inode(connection: socket.socket) -> int:
    return os.fstat(connection.fileno()).st_ino


@pytest.fixture
def diagnosis() -> Iterator[kernel.SocketDiagnosis]:
    found = kernel.SocketDiagnosis()
    yield found
    found.close()


@pytest.fixture
def tcp() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = socket.create_connection(server.getsockname())
        here, _ = server.accept()
        with here, there:
            yield here, there


@pytest.fixture
def unix() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        yield here, there


# --- who is at the other end ---


def test_the_peers_inode_of_a_unix_connection_is_the_other_ends(
    diagnosis: kernel.SocketDiagnosis, unix: tuple[socket.socket, socket.socket]
) -> None:
    here, there = unix
    assert diagnosis.peer_inode(here) == inode(there)
    assert diagnosis.peer_inode(there) == inode(here)


def test_the_peers_inode_of_a_tcp_connection_is_the_other_ends(
    diagnosis: kernel.SocketDiagnosis, tcp: tuple[socket.socket, socket.socket]
) -> None:
    here, there = tcp
    assert diagnosis.peer_inode(here) == inode(there)


def test_a_closed_unix_peer_is_a_missing_fact(
    diagnosis: kernel.SocketDiagnosis, unix: tuple[socket.socket, socket.socket]
) -> None:
    here, there = unix
    there.close()
    with pytest.raises(kernel.FactMissing):
        diagnosis.peer_inode(here)


def test_a_closed_tcp_peer_is_a_missing_fact(
    diagnosis: kernel.SocketDiagnosis, tcp: tuple[socket.socket, socket.socket]
) -> None:
    here, there = tcp
    there.close()
    with pytest.raises(kernel.FactMissing):
        diagnosis.peer_inode(here)


def test_the_peers_pid_is_the_process_that_connected(unix: tuple[socket.socket, socket.socket]) -> None:
    assert kernel.peer_pid(unix[0]) == os.getpid()


def test_a_connection_is_held_by_its_own_process(unix: tuple[socket.socket, socket.socket]) -> None:
    assert kernel.holders(inode(unix[1])) == (kernel.Member(os.getpid(), os.getpgrp()),)


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_connection_inherited_by_another_process_is_found(
    kind: str, diagnosis: kernel.SocketDiagnosis, request: pytest.FixtureRequest
) -> None:
    here, there = request.getfixturevalue(kind)
    with child(WAITS, fds=(there.fileno(),), apart=True) as heir:
        found = set(kernel.holders(diagnosis.peer_inode(here)))
        assert found == {kernel.Member(os.getpid(), os.getpgrp()), kernel.Member(heir.pid, heir.pid)}
        there.close()
        assert kernel.holders(diagnosis.peer_inode(here)) == (kernel.Member(heir.pid, heir.pid),)


def test_nobody_holds_an_inode_that_is_no_socket() -> None:
    assert kernel.holders(0) == ()


# --- rest ---


def test_a_process_whose_thread_runs_shows_no_activity_to_compare() -> None:
    busy = "import threading, sys; print('ready', flush=True)\nwhile True: pass"
    with child(busy) as process:
        assert [kernel.activity((process.pid,)) for _ in range(20)] == [None] * 20


def test_one_running_thread_among_sleepers_is_enough() -> None:
    busy = """
import sys, threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
print('ready', flush=True)
sys.stdin.read()
"""
    with child(busy) as process:
        assert [kernel.activity((process.pid,)) for _ in range(20)] == [None] * 20


def test_a_sleeping_process_shows_equal_activity() -> None:
    with child(WAITS) as process:
        assert eventually(lambda: kernel.activity((process.pid,)) is not None)
        first = kernel.activity((process.pid,))
        assert first is not None
        assert [thread for thread, _ in first] == [process.pid]
        assert kernel.activity((process.pid,)) == first


def test_a_process_that_ran_in_between_shows_other_activity() -> None:
    echo = "import sys; print('ready', flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"
    with child(echo) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert eventually(lambda: kernel.activity((process.pid,)) is not None)
        first = kernel.activity((process.pid,))
        process.stdin.write(b"run\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"run\n"
        assert eventually(lambda: kernel.activity((process.pid,)) is not None)
        assert kernel.activity((process.pid,)) != first


def test_a_process_that_is_gone_shows_no_activity() -> None:
    with child(WAITS) as process:
        pid = process.pid
    assert kernel.activity((pid,)) is None


# --- how processes end and stop ---


def test_a_living_child_has_not_ended() -> None:
    with child(WAITS) as process:
        pidfd = kernel.open_pidfd(process.pid)
        assert kernel.peek_ended(pidfd) is None
        os.close(pidfd)


def test_how_a_child_ended_is_seen_without_reaping_it() -> None:
    with child(WAITS) as process:
        pidfd = kernel.open_pidfd(process.pid)
        process.kill()
        assert eventually(lambda: kernel.peek_ended(pidfd) is not None)
        for _ in range(3):
            ended = kernel.peek_ended(pidfd)
            assert ended == kernel.Ended("killed", signal.SIGKILL)
            assert ended.killed_by_sigkill
        os.close(pidfd)


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("raise SystemExit(3)", kernel.Ended("exited", 3)),
        ("import os; os.kill(os.getpid(), 15)", kernel.Ended("killed", 15)),
        ("raise SystemExit(9)", kernel.Ended("exited", 9)),
    ],
)
def test_an_exit_and_a_signal_are_told_apart(source: str, ended: kernel.Ended) -> None:
    process = subprocess.Popen([sys.executable, "-c", source])
    pidfd = kernel.open_pidfd(process.pid)
    assert eventually(lambda: kernel.peek_ended(pidfd) is not None)
    assert kernel.peek_ended(pidfd) == ended
    assert not ended.killed_by_sigkill
    os.close(pidfd)
    process.wait()


def test_stopping_and_continuing_are_reported() -> None:
    with child(WAITS) as process:
        pidfd = kernel.open_pidfd(process.pid)
        assert not kernel.peek_stopped(pidfd)
        process.send_signal(signal.SIGSTOP)
        assert eventually(lambda: kernel.peek_stopped(pidfd))
        assert not kernel.take_continued(pidfd)
        process.send_signal(signal.SIGCONT)
        assert eventually(lambda: kernel.take_continued(pidfd))
        assert not kernel.take_continued(pidfd)
        os.close(pidfd)


def test_reaping_returns_the_childs_cpu_seconds() -> None:
    process = subprocess.Popen([sys.executable, "-c", "sum(range(10**7))"])
    assert 0 < kernel.reap(process.pid) < 60
    process.returncode = 0


def test_a_signal_to_a_group_that_is_gone_is_no_error() -> None:
    with child(WAITS, apart=True) as process:
        group = process.pid
    kernel.send_group(group, signal.SIGKILL)


# --- what processes there are ---


def test_the_members_of_a_group_are_those_that_live() -> None:
    with child(WAITS, apart=True) as process:
        assert kernel.group_members(process.pid) == (process.pid,)
        process.kill()
        assert eventually(lambda: kernel.group_members(process.pid) == ())


def test_a_processes_line_tells_parent_group_and_session() -> None:
    with child(WAITS, apart=True) as process:
        line = kernel.process_line(process.pid)
        assert line is not None
        assert (line.parent, line.group, line.session) == (os.getpid(), process.pid, process.pid)
    assert kernel.process_line(process.pid) is None


def test_a_name_with_brackets_does_not_confuse_a_processes_line() -> None:
    name = "import ctypes; ctypes.CDLL(None).prctl(15, b') S 1 1 (', 0, 0, 0);"
    with child(name + WAITS) as process:
        line = kernel.process_line(process.pid)
        assert line is not None
        assert line.parent == os.getpid()


def test_the_executed_file_is_the_kernels_word() -> None:
    with child(WAITS) as process:
        assert kernel.executable(process.pid) == os.path.realpath(sys.executable)
    assert kernel.executable(process.pid) is None


def test_a_child_dies_with_its_parent_when_it_asked_for_it() -> None:
    source = """
import os, signal, sys
from harness import kernel
reader, writer = os.pipe()
parent = os.getpid()
pid = os.fork()
if pid == 0:
    kernel.die_with_parent(signal.SIGTERM, parent)
    os.write(writer, b'x')
    signal.pause()
os.read(reader, 1)
print('ready', flush=True)
print(pid, flush=True)
sys.stdin.read()
"""
    with child(source) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
    # a subreaper, this process adopts the grandchild
    pidfd = kernel.open_pidfd(grandchild)
    assert eventually(lambda: kernel.peek_ended(pidfd) is not None)
    assert kernel.peek_ended(pidfd) == kernel.Ended("killed", signal.SIGTERM)
    os.close(pidfd)
    kernel.reap(grandchild)


def test_activity_covers_every_thread_of_a_process() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    with child(
        "import threading, sys\nt = threading.Thread(target=sys.stdin.read); t.start()\n"
        "print('ready', flush=True); t.join()"
    ) as process:
        assert eventually(lambda: len(kernel.activity((process.pid,)) or ()) == 2)
    done.set()
    thread.join()
