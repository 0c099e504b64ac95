"""The repository: what must not be in it, and who may know whom."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from arena.adapters import find_adapters
from arena.scenario import find_scenarios

ROOT = Path(__file__).resolve().parents[1]


def tracked() -> list[Path]:
    """Return the files that git tracks, or that a source archive holds."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in done.stdout.decode().split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


FILES = tracked()
MODULES = sorted(p for p in FILES if p.suffix == ".py")
# built from pieces, so that this file does not hold what it looks for
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("test", "pypi", "org"),
        ("proxy", "golang", "org"),
    )
]
MACHINE = [
    "/" + "/".join(parts) for parts in (("work", "main"), ("work", "shared"), ("root", "."), ("root", "work"))
]
MACHINE += ["/" + folder + "/" for folder in ("home", "Users")]


def found_in(patterns: list[str]) -> list[str]:
    found = []
    for path in FILES:
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {p}" for p in patterns if p in text]
    return found


def test_no_registrys_host_name_is_in_a_tracked_file() -> None:
    assert found_in(REGISTRIES) == []


def test_no_path_of_a_machine_is_in_a_tracked_file() -> None:
    assert found_in(MACHINE) == []


def test_no_lock_that_names_registries_is_tracked() -> None:
    names = {path.name for path in FILES}
    assert not names & {"uv.lock", "pylock.toml", "poetry.lock", "yarn.lock"}


def test_nothing_that_is_built_is_tracked() -> None:
    parts = {part for path in FILES for part in path.relative_to(ROOT).parts}
    assert not parts & {"build", "__pycache__", ".venv", "node_modules", ".mypy_cache", ".ruff_cache"}


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def below(folder: str) -> list[Path]:
    return [path for path in MODULES if path.is_relative_to(ROOT / folder)]


def test_the_harness_imports_neither_arena_nor_adapters() -> None:
    for path in below("harness"):
        tops = {name.split(".")[0] for name in imports(path)}
        assert not tops & {"arena", "adapters", "tests"}, path


def test_scenarios_know_no_adapter() -> None:
    names = {name for name, adapter in find_adapters(ROOT / "adapters").items() if not adapter.control}
    for path in below("arena/scenarios"):
        assert not {n for n in imports(path) if "adapters" in n or n.startswith("arena.targets")}, path
        words = set(re.findall(r"[a-z-]+", path.read_text(encoding="utf-8").lower()))
        assert not words & names, path


def test_checkers_and_statistics_do_no_input_or_output() -> None:
    for name in ("checkers", "statistics", "verdicts", "verify", "words"):
        path = ROOT / "arena" / f"{name}.py"
        tops = {module.split(".")[0] for module in imports(path)}
        assert not tops & {"os", "pathlib", "subprocess", "socket", "time", "asyncio", "random"}, path


def test_only_the_kernel_module_talks_to_the_kernel_of_one_platform() -> None:
    for path in below("harness") + below("arena"):
        if path.name in ("kernel.py", "forkserver.py"):
            continue
        assert "ctypes" not in imports(path), path
        assert "AF_NETLINK" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("folder", ["harness", "arena", "adapters"])
def test_every_module_says_what_it_is_for(folder: str) -> None:
    for path in below(folder):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_every_scenario_asks_a_users_question_and_says_what_must_hold() -> None:
    for name, scenario in find_scenarios().items():
        assert scenario.question.strip(), name
        assert "**Must hold:**" in scenario.doc, name
        assert scenario.rules, name
        assert len({case.name for case in scenario.cases}) == len(scenario.cases), name


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"}
    assert not {path.stem for path in MODULES} & vague
