"""Starts legs: runs in a target's interpreter (or the harness's, to exec other programs) and forks on request.

It imports the modules it is told to and nothing else; it never runs an agent before it forks. Before each
fork it makes sure that it has one thread and only descriptors it knows. A child becomes the leader of its own
session and process group, and an orphan, so that the harness (a subreaper) adopts and reaps it. A warm child
returns to the bottom of this file, runs the target as `__main__` and ends as an interpreter ends.

Standard library only. Messages are JSON datagrams on an inherited socket; the first one is the configuration.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import types
import warnings
from typing import Any, Dict, List, Optional, Set, Tuple

Control = socket.socket
_BUFFER = 1 << 20
_RLIMIT_LOCKS = 10


def _receive(control: Control) -> Tuple[Optional[Dict[str, Any]], List[int]]:
    data, fds, _, _ = socket.recv_fds(control, _BUFFER, 4)
    return (json.loads(data) if data else None), list(fds)


def _answer(control: Control, **facts: Any) -> None:
    control.send(json.dumps(facts).encode())


def _preload(names: List[str]) -> List[str]:
    missing = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:
                missing.append(name)
    return missing


def _complete_models() -> None:
    """Finish the pydantic models that their packages left to be finished on first use: definitions, no instance."""
    base = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    queue = [base] if base is not None else []
    while queue:
        model = queue.pop()
        queue.extend(model.__subclasses__())
        if not getattr(model, "__pydantic_complete__", True):
            with contextlib.suppress(Exception):
                model.model_rebuild(raise_errors=False)


def _open_descriptors() -> Set[int]:
    # the listing's own descriptor is closed by the time it is looked at
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + name)}


def _unfit(known: Set[int]) -> Optional[str]:
    """Why a warm child must not be forked now, or None."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return "%d threads run in the fork server" % threads
    unknown = _open_descriptors() - known
    if unknown:
        return "the fork server has unknown descriptors open: %s" % sorted(unknown)
    return None


def _fork_leader(close: List[int]) -> int:
    """Fork an orphan that leads its own session; return its pid in the server and 0 in the orphan."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            os.setsid()
            os.write(writer, b"%d" % os.getpid())
            os.close(writer)
            for fd in close:
                os.close(fd)
            return 0
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 32)
    os.close(reader)
    os.waitpid(middle, 0)
    return int(text)


def _become(job: Dict[str, Any], fds: List[int]) -> None:
    """Turn the forked child into the leg that the job describes, up to its first instruction."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (fds[0], 1), (fds[1], 2)):
        os.dup2(source, target)
    for fd in {null, *fds} - {0, 1, 2}:
        os.close(fd)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # Linux ignores this limit; it only marks the trial's processes, whatever they do to leave their parents
    resource.setrlimit(_RLIMIT_LOCKS, (job["mark"], job["mark"]))
    os.chdir(job["cwd"])
    if job["kind"] == "exec":
        os.execve(job["argv"][0], job["argv"], job["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(job["env"])
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _end_warm(module: types.ModuleType, ended: Dict[str, int]) -> None:
    """End a warm leg: the last of the exit functions, after the target's own and after its threads.

    What the target made is taken down as at any end of an interpreter; the 1,700 modules that the server had
    imported are not unpicked one by one in copied memory, which would cost 70 ms of CPU a leg.
    """
    status = ended.get("status")
    if status is None:
        return
    module.__dict__.clear()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def _run(code: types.CodeType, module: types.ModuleType, ended: Dict[str, int]) -> None:
    """Run the target and note the status that it ends with."""
    try:
        exec(code, module.__dict__)
    except SystemExit as leaving:
        status = leaving.code
        ended["status"] = 0 if status is None else status & 0xFF if isinstance(status, int) else 1
        raise
    except Exception:
        ended["status"] = 1
        raise
    ended["status"] = 0


def serve(control: Control) -> Optional[Dict[str, Any]]:
    """Serve until the harness hangs up. In a warm child: return the job that is now to be run."""
    config, _ = _receive(control)
    if config is None:
        return None
    known = _open_descriptors()
    missing = _preload(config["preload"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _complete_models()
    gc.collect()
    gc.freeze()
    alive: Dict[int, int] = {}
    _answer(control, ready=os.getpid(), missing=missing, unfit=_unfit(known))
    while True:
        try:
            job, fds = _receive(control)
        except ConnectionError:
            job, fds = None, []
        if job is None:
            # the harness is dead or done: whatever was started here and still runs ends now
            for pidfd in alive.values():
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            return None
        if alive:
            poll = select.poll()
            for pidfd in alive.values():
                poll.register(pidfd, select.POLLIN)
            for pidfd, _ in poll.poll(0):
                pid = next(p for p, f in alive.items() if f == pidfd)
                os.close(alive.pop(pid))
        unfit = None if job["kind"] == "exec" else _unfit(known | set(alive.values()) | set(fds))
        if unfit is not None:
            for fd in fds:
                os.close(fd)
            _answer(control, unfit=unfit)
            continue
        pid = _fork_leader([control.fileno(), *alive.values()])
        if pid == 0:
            control.detach()
            try:
                _become(job, fds)
            except OSError as error:
                os.write(2, ("cannot start %s: %s\n" % (job["argv"][0], error)).encode())
                os._exit(127)
            return job
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(OSError, AttributeError):
            alive[pid] = os.pidfd_open(pid)
        _answer(control, pid=pid)


def as_main(argv: List[str]) -> Tuple[types.CodeType, types.ModuleType]:
    """Make a `__main__` module for a target, as the interpreter would for `python TARGET ...`."""
    path = argv[0]
    sys.argv = list(argv)
    sys.path.insert(0, os.path.dirname(path))
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True), module


def _write_modules(path: str) -> None:
    """Write the names of the installed and standard modules that a finished run has loaded, in their order."""
    names = []
    for name, module in list(sys.modules.items()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
        if name == "__main__" or name != getattr(module, "__name__", name):
            continue
        if "site-packages" in origin or origin.startswith((sys.base_prefix, "frozen", "built-in")):
            names.append(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(names))


if __name__ == "__main__":
    del sys.path[0]  # the harness's own modules are no business of a target
    _own = sys.modules["__main__"]  # keeps this module's names alive when the target takes its place
    _job = None
    _learn = sys.argv[1] == "--learn"
    if _learn:
        atexit.register(_write_modules, sys.argv[2])
        _job = {"argv": sys.argv[3:]}
    else:
        _control = socket.socket(fileno=int(sys.argv[1]))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _job = serve(_control)
        if _job is not None:
            sys.path[:0] = _job["path"]
    if _job is not None:
        _code, _module = as_main(_job["argv"])
        _ended: Dict[str, int] = {}
        if not _learn:
            atexit.register(_end_warm, _module, _ended)
        _run(_code, _module, _ended)
