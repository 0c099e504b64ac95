"""What every adapter's target keeps to: it imports its framework and the client, and calls what its recipe says."""

import ast
import re
import sys
from pathlib import Path

import pytest

from arena.adapters import Adapter, find_adapters

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = find_adapters(ROOT / "adapters")
PYTHON = sorted(name for name, adapter in ADAPTERS.items() if adapter.language == "python")
FRAMEWORKS = sorted(name for name, adapter in ADAPTERS.items() if not adapter.control)
#: Words of a recipe's call that stand for the user's own names or for Python's.
_NO_KEY_WORDS = frozenset(("None", "True", "False", "await", "with", "as"))


def source(adapter: Adapter) -> str:
    return (adapter.folder / adapter.target).read_text(encoding="utf-8")


def locked(adapter: Adapter) -> set[str]:
    """Return the distributions that an adapter's locks install, as import names may be spelled."""
    names: set[str] = set()
    for version in adapter.versions:
        if version.lock is not None:
            text = (adapter.folder / version.lock).read_text(encoding="utf-8")
            names.update(re.findall(r"(?m)^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", text))
    return {name.lower().replace("-", "_") for name in names}


def imported(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a target is one file"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("name", PYTHON)
def test_a_target_imports_only_its_framework_and_the_client(name: str) -> None:
    adapter = ADAPTERS[name]
    installed = locked(adapter)
    for module in imported(source(adapter)) - {"plugpull"}:
        top = module.split(".")[0]
        assert top not in ("harness", "arena", "tests")
        if top not in sys.stdlib_module_names:
            assert any(top == d or d.startswith(f"{top}_") or top.startswith(d) for d in installed), module


@pytest.mark.parametrize("name", PYTHON)
def test_a_target_forwards_every_tool_to_the_client(name: str) -> None:
    text = source(ADAPTERS[name])
    for tool in ("lookup", "calculator", "charge_card", "send_receipt"):
        assert tool in text
    assert "plugpull.effect" in text or "effect(" in text
    assert "answer(" in text


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_key_words_of_every_recipe_stand_in_the_target(name: str) -> None:
    adapter = ADAPTERS[name]
    text = source(adapter)
    for mode, described in adapter.modes.items():
        assert described.recipe is not None
        words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", re.sub(r'"[^"]*"', "", described.recipe.call)))
        missing = {w for w in words - _NO_KEY_WORDS if w not in text}
        assert not missing, f"{mode}: {described.recipe.call}: {missing}"


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_a_target_knows_no_scenario(name: str) -> None:
    text = source(ADAPTERS[name])
    for scenario in (ROOT / "arena" / "scenarios").glob("[a-z]*.py"):
        assert scenario.stem.replace("_", "-") not in text
