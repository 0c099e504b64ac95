"""A checkout of its own for the command line: its sources are the repository's, `build/` and `results/` are not."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import kernel

ROOT = Path(__file__).resolve().parents[1]
PLUGPULL = (sys.executable, "-m", "arena.main")
_LIMIT_S = 120.0


def eventually(true: Callable[[], object], limit_s: float = _LIMIT_S) -> bool:
    """Return whether something comes true within a limit."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return bool(true())


@contextlib.contextmanager
def checkout(root: Path) -> Iterator[Checkout]:
    """Make a checkout below `root`. Its temporary folder has a short name, since sockets stand in it."""
    for name in ("adapters", "arena", "harness", "site"):
        (root / name).symlink_to(ROOT / name)
    (root / "results").mkdir()
    scratch = Path(tempfile.mkdtemp(prefix="pp-", dir="/tmp"))
    try:
        yield Checkout(root, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True)
class Checkout:
    """A folder that the command line takes for the repository, and where its runs keep temporary files."""

    root: Path
    scratch: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the command line works on this checkout."""
        paths = {"PLUGPULL_ROOT": str(self.root), "TMPDIR": str(self.scratch), "PYTHONPATH": str(ROOT)}
        return {**os.environ, **paths, "NO_COLOR": "1"}

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the command line to its end."""
        return subprocess.run(
            [*PLUGPULL, *arguments],
            env={**self.environment, **variables},
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    @contextlib.contextmanager
    def start(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run the command line beside the test; whatever is left of it is ended at the block's end."""
        process = subprocess.Popen(
            [*PLUGPULL, *arguments],
            env=self.environment,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.communicate(timeout=_LIMIT_S)

    def adapter(self, name: str, change: Callable[[str], str]) -> Path:
        """Replace an adapter by a copy whose adapter.toml is changed, and return that file."""
        adapters = self.root / "adapters"
        if adapters.is_symlink():
            adapters.unlink()
            adapters.mkdir()
            for folder in (ROOT / "adapters").iterdir():
                (adapters / folder.name).symlink_to(folder)
        (adapters / name).unlink()
        (adapters / name).mkdir()
        for entry in (ROOT / "adapters" / name).iterdir():
            if entry.name != "adapter.toml":
                (adapters / name / entry.name).symlink_to(entry)
        file = adapters / name / "adapter.toml"
        text = (ROOT / "adapters" / name / "adapter.toml").read_text(encoding="utf-8")
        changed = change(text)
        assert changed != text
        file.write_text(changed, encoding="utf-8")
        return file

    def journal(self) -> Path:
        """Return the journal of the only run."""
        (path,) = (self.root / "build" / "runs").glob("*.jsonl")
        return path

    def processes(self) -> set[int]:
        """Return every live process of this checkout's runs."""
        return {pid for pid, _ in self._blocks()}

    def harness(self) -> set[int]:
        """Return the live guardian and harness."""
        return {pid for pid, block in self._blocks() if b"PLUGPULL_ROOT=" in block}

    def started(self) -> set[int]:
        """Return the live processes that a harness has started: agents, what they left, fork servers."""
        return self.processes() - self.harness()

    def agents(self) -> set[int]:
        """Return the live agents."""
        return {pid for pid, _ in self._blocks() if kernel.mark_of(pid) is not None}

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        mine = str(self.scratch).encode()
        for line in kernel.processes():
            if line.state not in "ZX":
                try:
                    block = Path(f"/proc/{line.pid}/environ").read_bytes()
                except OSError:
                    continue
                if mine in block:
                    yield line.pid, block
