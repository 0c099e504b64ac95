"""Environments of targets: one for each lock, made with uv from hash-pinned requirements, read by the harness.

It knows interpreters and packages; it knows no framework.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_STDERR_LINES = 8


class EnvironmentFailed(RuntimeError):
    """An environment could not be made; the text says which lock, and what uv said."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that is there.

    Attributes:
        directory: where it stands.
        python: its interpreter, as the path to start.
        interpreter: the file that the kernel shows as executed when `python` runs.
        lock_digest: SHA-256 of the lock it was made from.
    """

    directory: Path
    python: Path
    interpreter: str
    lock_digest: str

    def version_of(self, package: str) -> str | None:
        """Return the version of an installed distribution from the environment's own metadata."""
        for site in self.directory.glob("lib/python*/site-packages"):
            for found in metadata.distributions(name=package, path=[str(site)]):
                return found.version
        return None


def lock_digest(lock: Path) -> str:
    """Return the SHA-256 of a lock file."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def ensure_environment(root: Path, name: str, lock: Path) -> Environment:
    """Return the environment for a lock, making it first when it is not there.

    Args:
        root: where environments are kept, e.g. `build/environments`.
        name: part of the folder's name, e.g. `langgraph-1.2.24`.
        lock: hash-pinned requirements (`uv pip compile --generate-hashes`).

    Raises:
        EnvironmentFailed: a hash differs, a package cannot be had (no network), the disk is full, …
    """
    digest = lock_digest(lock)
    directory = root / f"{name}-{digest[:12]}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / f"{directory.name}.lock"):
            if not (directory / "complete").exists():
                shutil.rmtree(directory, ignore_errors=True)
                _make(directory, lock)
                (directory / "complete").touch()
    except OSError as error:
        raise EnvironmentFailed(f"{name}: {error.strerror or error}: {error.filename or root}") from error
    python = directory / "bin" / "python"
    return Environment(directory, python, os.path.realpath(python), digest)


def own_environment() -> Environment:
    """Return the harness's own interpreter as an environment, for targets that need no package."""
    python = Path(sys.executable)
    return Environment(Path(sys.prefix), python, os.path.realpath(python), "")


def _make(directory: Path, lock: Path) -> None:
    _uv("venv", "--quiet", "--python", sys.executable, str(directory), lock=lock)
    _uv(
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--compile-bytecode",
        "--python",
        str(directory / "bin" / "python"),
        "-r",
        str(lock),
        lock=lock,
    )
    bundle = next(directory.glob("lib/python*/site-packages/certifi/cacert.pem"), None)
    if bundle is not None:
        first, end, _ = bundle.read_text(encoding="utf-8").partition("-----END CERTIFICATE-----\n")
        (directory / "one-certificate.pem").write_text(first + end, encoding="utf-8")


def _uv(*arguments: str, lock: Path) -> None:
    program = Path(sys.executable).with_name("uv")
    command = [str(program) if program.exists() else "uv", *arguments]
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    environment.pop("VIRTUAL_ENV", None)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentFailed(f"cannot run uv ({error}); run `make setup`") from error
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-_STDERR_LINES:])
        raise EnvironmentFailed(
            f"the environment for {lock.parent.parent.name}/{lock.parent.name}/{lock.name} cannot be made; uv said:\n"
            f"{said}\nCheck the network and the disk, then run the same command again."
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time make an environment."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
