"""What every adapter keeps to: the rules of `arena.contract`, which `plugpull check` shows to its author."""

from pathlib import Path

import pytest

from arena.adapters import find_adapters
from arena.contract import RULES, Rule
from arena.scenario import find_scenarios

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = find_adapters(ROOT / "adapters")
SCENARIOS = find_scenarios()


@pytest.mark.parametrize("name", sorted(ADAPTERS))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_adapter_keeps_to_every_rule(name: str, rule: Rule) -> None:
    assert rule(ADAPTERS[name], SCENARIOS) == []
