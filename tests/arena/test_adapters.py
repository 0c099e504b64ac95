"""Adapters: what is wrong in an adapter.toml is named with its file and its field."""

from collections.abc import Callable
from pathlib import Path

import pytest

from arena.adapters import AdapterError, find_adapters, in_range, load_adapter

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = find_adapters(ROOT / "adapters")

GOOD = """
name = "Good"
licence = "MIT"
target = "target.py"
summary = "A framework."

[[versions]]
version = "1.0"

[modes.plain]
summary = "Saves."
durable = "a file"
[modes.plain.recipe]
call = "resume()"
quote = "Call resume."
url = "https://example.org/resume"
checked = 2026-11-30

[[promises]]
modes = ["plain"]
anomalies = ["duplicated"]
stance = "documents"
quote = "It may run again."
url = "https://example.org/again"
checked = 2026-11-30
"""
RECIPE = GOOD[GOOD.index("[modes.plain.recipe]") : GOOD.index("[[promises]]")]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], object]:
    folder = tmp_path / "adapters" / "good"
    folder.mkdir(parents=True)
    (folder / "target.py").write_text("", encoding="utf-8")

    def load(text: str) -> object:
        (folder / "adapter.toml").write_text(text, encoding="utf-8")
        return load_adapter(folder)

    return load


def test_a_good_adapter_loads(load: Callable[[str], object]) -> None:
    assert load(GOOD)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: t.replace('name = "Good"', "name = "), "TOML"),
        (lambda t: t.replace('name = "Good"\n', ""), "name"),
        (lambda t: t.replace('name = "Good"', 'name = "Good"\nnmae = "Good"'), "nmae"),
        (lambda t: t.replace('summary = "A', 'folder = "/etc"\nsummary = "A'), "folder"),
        (lambda t: t.replace(RECIPE, ""), "recipe"),
        (lambda t: t.replace('quote = "Call resume."\n', ""), "modes.plain.recipe.quote"),
        (lambda t: t.replace("https://example.org/resume", "http://example.org"), "modes.plain.recipe.url"),
        (lambda t: t.replace("https://example.org/again", "the docs"), "promises.0.url"),
        (lambda t: t.replace('"documents"', '"admits"'), "promises.0.stance"),
        (lambda t: t.replace('["duplicated"]', '["doubled"]'), "promises.0.anomalies"),
        (lambda t: t.replace('modes = ["plain"]', 'modes = ["plain"]\nversions = "new"'), "promises.0.versions"),
        (lambda t: t.replace("checked = 2026-11-30", 'checked = "lately"'), "checked"),
        (lambda t: t.replace('target = "target.py"', 'target = "agent.py"'), "agent.py"),
        (lambda t: t.replace('version = "1.0"', 'version = "1.0"\nlock = "locks/1.0.txt"'), "locks/1.0.txt"),
        (lambda t: t.replace("[modes.plain", "[modes.Plain"), "modes"),
        (lambda t: t.replace('durable = "a file"', 'durable = "a file"\nleg_limit_s = 9'), "leg_limit_reason"),
        (lambda t: t.replace('durable = "a file"', 'durable = "a file"\nleg_limit_s = -9'), "leg_limit_s"),
        (lambda t: t.replace('licence = "MIT"', 'licence = "MIT"\ncontrol = true'), "known"),
        (lambda t: t.replace('[[versions]]\nversion = "1.0"', ""), "versions"),
        (lambda t: t.replace('licence = "MIT"', 'licence = "MIT"\nlanguage = "cobol"'), "language"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_field(
    load: Callable[[str], object], change: Callable[[str], str], named: str
) -> None:
    text = change(GOOD)
    assert text != GOOD
    with pytest.raises(AdapterError) as error:
        load(text)
    assert "adapters/good/adapter.toml" in str(error.value)
    assert named in str(error.value)


NO_RESUME = """
[[unsupported]]
capability = "resume"
reason = "Its memory goes with the process."
url = "https://example.org/memory"
checked = 2026-11-30
"""


def test_a_framework_that_cannot_resume_has_no_recipe(load: Callable[[str], object]) -> None:
    assert load(GOOD.replace(RECIPE, "") + NO_RESUME)
    with pytest.raises(AdapterError, match=r"modes\.plain\.recipe"):
        load(GOOD + NO_RESUME)
    with pytest.raises(AdapterError, match=r"modes\.plain\.recipe"):
        load(GOOD.replace(RECIPE, "") + NO_RESUME.replace("reason", 'modes = ["another"]\nreason'))


def test_a_folder_without_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(AdapterError, match=r"empty/adapter\.toml"):
        load_adapter(tmp_path / "empty")


def test_bytes_that_are_no_text_are_named(load: Callable[[str], object], tmp_path: Path) -> None:
    load(GOOD)
    (tmp_path / "adapters" / "good" / "adapter.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(AdapterError, match=r"good/adapter\.toml"):
        load_adapter(tmp_path / "adapters" / "good")


def test_every_adapter_of_the_repository_loads() -> None:
    folders = {p.name for p in (ROOT / "adapters").iterdir() if (p / "adapter.toml").exists()}
    assert set(ADAPTERS) == folders
    assert {"controls", "vanilla", "langgraph"} <= folders


def test_ranges_of_versions_are_those_of_python() -> None:
    assert in_range("1.2.24", ">=1.0")
    assert not in_range("0.6.11", ">=1.0")
    assert in_range("2.0rc1", ">=1.0")
    assert in_range("anything", "")
