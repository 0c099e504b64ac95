"""The mutants themselves: a mutant whose line is gone breaks nothing and would seem to survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.breaks import BREAKS, Break

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
def test_a_mutants_line_stands_exactly_once_in_its_file(broken: Break) -> None:
    text = (ROOT / broken.file).read_text(encoding="utf-8")
    assert text.count(broken.old) == 1
    assert broken.new != broken.old


def test_there_are_at_least_fifteen_mutants() -> None:
    assert len({broken.name for broken in BREAKS}) >= 15
