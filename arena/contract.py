"""What an adapter keeps to: rules over its files, each with the remedy for what it finds. Runs nothing of the adapter.

`load_adapter` refuses what cannot be run at all. The rules here say what a reviewer would: they read the target's
text, the locks, and which cells the entries of `adapter.toml` are about.
"""

from __future__ import annotations

import ast
import datetime
import fnmatch
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from arena.adapters import (
    TODO,
    Adapter,
    AdapterError,
    Known,
    Promise,
    Unsupported,
    load_adapter,
    read_toml,
    shown_path,
)
from arena.cells import Shot, Wanted, select
from arena.scenario import Scenario

#: A rule returns what it found, a line each: where, what, and what to do.
Rule = Callable[[Adapter, Mapping[str, Scenario]], list[str]]
TOOLS = ("lookup", "calculator", "charge_card", "send_receipt")
#: Words of a recipe's call that are Python's own.
_NO_KEY_WORDS = frozenset(("None", "True", "False", "await", "with", "as"))
#: What stands in a target that has a capability (a pattern), and what to write there.
_SIGNS: Mapping[str, tuple[str, str]] = {
    "tool-call-id": (r"\bkey\s*[=:]", "pass the framework's tool-call id to plugpull.effect as key="),
    "approval": (r"\bpaused\(", "let charge_card wait for a person and call plugpull.paused()"),
    "session-store": (r"\bstore\(", "keep the session in plugpull.store and plugpull.stored"),
}
_Entry = Unsupported | Promise | Known


def check_folder(folder: Path, scenarios: Mapping[str, Scenario]) -> list[str]:
    """Return everything that is missing or wrong in an adapter's folder, a line each."""
    try:
        adapter = load_adapter(folder)
    except AdapterError as error:
        return [*str(error).splitlines(), *_missing_locks(folder)]
    return [line for rule in RULES for line in rule(adapter, scenarios)]


# --- the target --------------------------------------------------------------------------------------


def imports_only_its_framework(adapter: Adapter, _: Mapping[str, Scenario]) -> list[str]:
    """A target imports the standard library, `plugpull`, and what its locks install."""
    if adapter.language != "python":
        return []
    shown = _target(adapter)
    installed = {name for v in adapter.versions if v.lock for name in _pins(adapter.folder / v.lock)}
    names = {re.sub(r"[-.]", "_", name.lower()) for name in installed}
    try:
        tree = ast.parse(_source(adapter))
    except SyntaxError as error:
        return [f"{shown}:{error.lineno}: is no Python: {error.msg}"]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = ["." * node.level + (node.module or "")]
        else:
            continue
        for module in modules:
            top = module.split(".")[0]
            if module.startswith("."):
                found.append(f"{shown}:{node.lineno}: a target is one file: take `{module}` into it")
            elif top in sys.stdlib_module_names or top == "plugpull":
                continue
            elif not any(
                top == d or d.startswith(f"{top}_") or top.startswith(d) or d.endswith(f"_{top}")
                for d in names
            ):
                found.append(
                    f"{shown}:{node.lineno}: no lock installs `{top}`: add it to the .in, or do without"
                )
    return found


def forwards_every_tool(adapter: Adapter, _: Mapping[str, Scenario]) -> list[str]:
    """A target offers the four tools, forwards them to the client and hands in its answer."""
    text = _source(adapter)
    shown = _target(adapter)
    found = [f"{shown}: has no tool `{tool}`: add it" for tool in TOOLS if tool not in text]
    for sign, what in (
        ("call(", "lookup and calculator are not forwarded: use plugpull.call"),
        ("effect(", "charge_card and send_receipt are not forwarded: use plugpull.effect"),
        ("answer(", "the final answer is not handed in: use plugpull.answer"),
        ("hello(", "it does not say what it is: use plugpull.hello"),
    ):
        if sign not in text:
            found.append(f"{shown}: {what}")
    return found


def does_or_says_why_not(adapter: Adapter, scenarios: Mapping[str, Scenario]) -> list[str]:
    """A capability that `adapter.toml` does not call unsupported is used in the target."""
    text = _source(adapter)
    supported: set[str] = set()
    for shot in _shots(adapter, scenarios):
        for key in shot.keys:
            if shot.lacks(key) is None:
                supported.update(shot.needs(key))
    return [
        f"{_target(adapter)}: {remedy}, or say in adapter.toml why it cannot: "
        f'[[unsupported]] capability = "{capability}"'
        for capability, (sign, remedy) in _SIGNS.items()
        if capability in supported and not re.search(sign, text)
    ]


def has_every_word_of_its_recipes(adapter: Adapter, _: Mapping[str, Scenario]) -> list[str]:
    """The names in a recipe's call stand in the target: what is documented is what is run."""
    text = _source(adapter)
    found = []
    for mode, described in adapter.modes.items():
        if described.recipe is None:
            continue
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*", re.sub(r'"[^"]*"', "", described.recipe.call))
        missing = [w for w in dict.fromkeys(words) if w not in _NO_KEY_WORDS and w not in text]
        if missing:
            found.append(
                f"{_toml(adapter)}: modes.{mode}.recipe.call: {', '.join(missing)} not found in "
                f"{adapter.target}: write the call as the target makes it"
            )
    return found


def knows_no_scenario(adapter: Adapter, scenarios: Mapping[str, Scenario]) -> list[str]:
    """A target cannot tell which scenario it runs in."""
    text = _source(adapter)
    return [
        f"{_target(adapter)}: names the scenario {name}: a target must behave the same in each; take it out"
        for name in scenarios
        if name in text
    ]


# --- locks -------------------------------------------------------------------------------------------


def pins_every_version(adapter: Adapter, _: Mapping[str, Scenario]) -> list[str]:
    """Each version has a lock that pins it and all it needs by hash, and that names no package registry."""
    if adapter.package is None:
        return []
    found = []
    for number, version in enumerate(adapter.versions):
        if version.lock is None:
            found.append(f"{_toml(adapter)}: versions.{number}.lock: is missing: add it")
            continue
        lock = adapter.folder / version.lock
        shown = shown_path(adapter.folder, version.lock)
        again = f"compile it again: {compile_command(adapter.folder, version.lock, version.released)}"
        text = lock.read_text(encoding="utf-8")
        if re.search(r"://|^--(?:extra-)?(?:index|find)", text, re.MULTILINE):
            found.append(f"{shown}: holds the address of a package registry: {again}")
        blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
        bare = [b.split()[0] for b in blocks if "==" not in b.split("\n")[0] or "--hash=sha256:" not in b]
        if bare:
            found.append(f"{shown}: not pinned by hash: {', '.join(bare)}: {again}")
        pin = f"{_spelled(adapter.package)}=={version.version}"
        if pin not in {f"{_spelled(name)}=={pinned}" for name, pinned in _pins(lock).items()}:
            found.append(f"{shown}: does not pin {pin}: correct the .in, then {again}")
    return found


def compile_command(folder: Path, lock: str, released: object) -> str:
    """Return the command that compiles a lock from the `.in` beside it, typed in the checkout.

    Args:
        folder: the adapter's folder.
        lock: the lock's path below it.
        released: the day of the version's release; a `DATE` to be filled in where it is no date.
    """
    day = released.isoformat() if isinstance(released, datetime.date) else "DATE"
    place, name = Path(lock).parent, Path(lock).stem
    return (
        f"(cd {folder.parent.name}/{folder.name}/{place} && {'../' * (2 + len(place.parts))}.venv/bin/uv pip compile --quiet "
        "--generate-hashes --no-emit-index-url --no-header --python-version 3.11 "
        f"--exclude-newer {day}T23:59:59Z {name}.in -o {name}.txt)"
    )


def _missing_locks(folder: Path) -> list[str]:
    """Return the locks that are named and not there; for a folder whose `adapter.toml` is not filled in yet."""
    try:
        versions = read_toml(folder).get("versions", ())
    except AdapterError:
        return []
    return [
        f"{shown_path(folder, version['lock'])}: is missing: "
        f"compile it: {compile_command(folder, version['lock'], version.get('released'))}"
        for version in versions
        if isinstance(version, dict) and isinstance(version.get("lock"), str)
        if not version["lock"].startswith(TODO) and not (folder / version["lock"]).exists()
    ]


# --- which cells -------------------------------------------------------------------------------------


def names_modes_and_scenarios_that_exist(adapter: Adapter, scenarios: Mapping[str, Scenario]) -> list[str]:
    """Every pattern over modes and scenarios matches one."""
    found = []
    for field, entry in _entries(adapter):
        for what, patterns, there in (
            ("modes", entry.modes, list(adapter.modes)),
            ("scenarios", entry.scenarios, list(scenarios)),
        ):
            for pattern in patterns:
                if not fnmatch.filter(there, pattern):
                    found.append(
                        f"{_toml(adapter)}: {field}.{what}: {pattern!r} names none; there are {', '.join(there)}"
                    )
    return found


def has_no_entry_that_is_never_shown(adapter: Adapter, scenarios: Mapping[str, Scenario]) -> list[str]:
    """Each promise and each lack is the first one about some cell, so that a page shows it."""
    shown: set[int] = set()
    for shot in _shots(adapter, scenarios):
        where = (shot.version, shot.mode, shot.scenario.name, shot.point)
        for key in shot.keys:
            lacking = shot.lacks(key)
            if lacking is not None:
                shown.add(id(lacking))
                continue
            for anomaly in {a for p in adapter.promises for a in p.anomalies}:
                promise = adapter.promise(anomaly, *where, key)
                if promise is not None:
                    shown.add(id(promise))
    return [
        f"{_toml(adapter)}: {field}: covers no cell, or an entry above it covers them all: "
        "correct its modes, scenarios, points, keys or versions, or take it out"
        for field, entry in _entries(adapter)
        if not isinstance(entry, Known) and id(entry) not in shown
    ]


#: All rules, in the order in which their findings are shown.
RULES: tuple[Rule, ...] = (
    pins_every_version,
    imports_only_its_framework,
    forwards_every_tool,
    does_or_says_why_not,
    has_every_word_of_its_recipes,
    knows_no_scenario,
    names_modes_and_scenarios_that_exist,
    has_no_entry_that_is_never_shown,
)


# --- pieces ------------------------------------------------------------------------------------------


def _source(adapter: Adapter) -> str:
    return (adapter.folder / adapter.target).read_text(encoding="utf-8")


def _toml(adapter: Adapter) -> str:
    return shown_path(adapter.folder)


def _target(adapter: Adapter) -> str:
    return shown_path(adapter.folder, adapter.target)


def _entries(adapter: Adapter) -> Iterable[tuple[str, _Entry]]:
    groups: Mapping[str, Sequence[_Entry]] = {
        "unsupported": adapter.unsupported,
        "promises": adapter.promises,
        "known": adapter.known,
    }
    for name, entries in groups.items():
        for number, entry in enumerate(entries):
            yield f"{name}.{number}", entry


def _shots(adapter: Adapter, scenarios: Mapping[str, Scenario]) -> tuple[Shot, ...]:
    return select(Wanted((f"{adapter.id}@all",), full=True), {adapter.id: adapter}, scenarios)


def _pins(lock: Path) -> dict[str, str]:
    """Return the versions that a lock pins, by distribution."""
    text = lock.read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==(\S+)", text))


def _spelled(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
