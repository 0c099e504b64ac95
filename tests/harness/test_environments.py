"""Environments of targets: what goes wrong is said with the lock's name, and nothing half-made is used."""

import os
import sys
from pathlib import Path

import pytest

from harness.environments import EnvironmentFailed, ensure_environment, lock_digest, own_environment


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty-cache"))


def lock_with(text: str, folder: Path) -> Path:
    lock = folder / "adapters" / "some" / "locks" / "1.0.txt"
    lock.parent.mkdir(parents=True)
    lock.write_text(text, encoding="utf-8")
    return lock


PINNED = f"idna==3.10 --hash=sha256:{'0' * 64}\n"


@pytest.mark.usefixtures("offline")
def test_an_environment_that_cannot_be_had_is_an_error_that_names_its_lock(tmp_path: Path) -> None:
    lock = lock_with(PINNED, tmp_path)
    with pytest.raises(EnvironmentFailed, match=r"some/locks/1\.0\.txt"):
        ensure_environment(tmp_path / "environments", "some-1.0", lock)


@pytest.mark.usefixtures("offline")
def test_a_half_made_environment_is_not_used(tmp_path: Path) -> None:
    lock = lock_with(PINNED, tmp_path)
    for _ in range(2):
        with pytest.raises(EnvironmentFailed):
            ensure_environment(tmp_path / "environments", "some-1.0", lock)


@pytest.mark.usefixtures("offline")
def test_an_environment_is_made_once(tmp_path: Path) -> None:
    lock = lock_with("", tmp_path)
    first = ensure_environment(tmp_path / "environments", "some-1.0", lock)
    made = first.python.lstat().st_mtime_ns
    assert ensure_environment(tmp_path / "environments", "some-1.0", lock) == first
    assert first.python.lstat().st_mtime_ns == made
    assert first.interpreter == os.path.realpath(sys.executable)


@pytest.mark.usefixtures("offline")
def test_another_lock_is_another_environment(tmp_path: Path) -> None:
    lock = lock_with("", tmp_path)
    first = ensure_environment(tmp_path / "environments", "some-1.0", lock)
    lock.write_text("# other\n", encoding="utf-8")
    second = ensure_environment(tmp_path / "environments", "some-1.0", lock)
    assert first.directory != second.directory
    assert second.lock_digest == lock_digest(lock)


@pytest.mark.usefixtures("offline")
def test_a_requirement_without_a_hash_is_refused(tmp_path: Path) -> None:
    lock = lock_with("idna==3.10\n", tmp_path)
    with pytest.raises(EnvironmentFailed, match=r"--hash|hash"):
        ensure_environment(tmp_path / "environments", "some-1.0", lock)


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    blocked = tmp_path / "environments"
    blocked.write_text("a file", encoding="utf-8")
    with pytest.raises(EnvironmentFailed, match="environments"):
        ensure_environment(blocked, "some-1.0", lock_with("", tmp_path))


def test_a_version_is_read_from_the_environments_own_metadata() -> None:
    environment = own_environment()
    assert environment.version_of("pytest") == pytest.__version__
    assert environment.version_of("no-such-distribution") is None
