"""What tests of the arena share: a checkout of its own for each test of the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import Checkout, checkout


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Checkout]:
    """The command line, on a checkout whose `build/` is private."""
    root = tmp_path / "checkout"
    root.mkdir()
    with checkout(root) as made:
        yield made
