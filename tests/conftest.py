"""What tests share: the process is a subreaper, and one pool of trials serves them all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import kernel
from harness.pool import TrialPool
from tests.trials import Trials


@pytest.fixture(scope="session", autouse=True)
def _subreaper() -> None:
    """Adopt orphans, as the process that runs trials must."""
    kernel.become_subreaper()


@pytest.fixture(scope="session")
def pool() -> Iterator[TrialPool]:
    """A pool of trials with no ceiling that a test could meet."""
    with TrialPool(3, 3600) as pool:
        yield pool


@pytest.fixture
def trials(pool: TrialPool, tmp_path: Path) -> Trials:
    """Runs targets that a test writes."""
    return Trials(pool, tmp_path)
