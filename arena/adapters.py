"""Adapters: folders under `adapters/`, each described by an `adapter.toml`, found by looking.

Validation is strict and names file and field. This module knows no scenario; it starts nothing.
"""

from __future__ import annotations

import datetime
import fnmatch
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import packaging.specifiers
import packaging.version
import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from arena.words import Anomaly, Verdict

NAME = r"^[a-z][a-z0-9_]*$"
MODE = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
KeyUse = Literal["none", "with"]
#: How a value, or a line of a target, begins that is still to be filled in; what follows says how.
TODO = "TODO"
#: What an adapter's author can do about a fault, where pydantic's words do not say it.
_REMEDIES = {
    "missing": "is missing: add it",
    "extra_forbidden": "is no field of this table: correct its name, or take it out",
}


class AdapterError(Exception):
    """An adapter cannot be used; the text names file and field and says what to do."""


class AdapterUnfinished(AdapterError):
    """An adapter has gaps that `plugpull new` left; `adapter` is its name."""

    def __init__(self, adapter: str, text: str) -> None:
        super().__init__(text)
        self.adapter = adapter


def _specifier(text: str) -> str:
    packaging.specifiers.SpecifierSet(text)
    return text


def _address(text: str) -> str:
    if not text.startswith("https://"):
        raise ValueError("an address begins with https://")
    return text


Specifier = Annotated[str, AfterValidator(_specifier)]
Address = Annotated[str, AfterValidator(_address)]
Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Version(_Strict):
    """A version of the framework that is tested, and the lock of its environment."""

    version: Text
    lock: Text | None = None
    released: datetime.date | None = None
    note: str = ""


class Recipe(_Strict):
    """The documented call that resumes a run, with the sentence that documents it."""

    call: Text
    quote: Text
    url: Address
    checked: datetime.date
    note: str = ""


class Readback(_Strict):
    """How a mode is read back from what a run left behind."""

    file: Text
    sqlite_pragma: Text
    expect: Text


class Engine(_Strict):
    """A server that some modes need: the program in the adapter's folder that starts it, and its wheel."""

    summary: Text
    program: Text
    package: Text
    timeouts: Text


class Mode(_Strict):
    """A way to make the framework durable that its docs teach.

    `engine` names the server it needs. `slow` says why it is left out of a run that does not name it. `baseline`
    says what the target runs when `PLUGPULL_DURABILITY=off` asks for the same agent without durability.
    """

    summary: Text
    durable: Text
    versions: Specifier = ""
    recipe: Recipe | None = None
    readback: Readback | None = None
    leg_limit_s: float | None = Field(default=None, gt=0)
    leg_limit_reason: str = ""
    engine: Text | None = None
    slow: str = ""
    baseline: Text | None = None

    @pydantic.model_validator(mode="after")
    def _limit_has_a_reason(self) -> Mode:
        if self.leg_limit_s is not None and not self.leg_limit_reason:
            raise ValueError("leg_limit_s needs leg_limit_reason")
        return self


class _Cells(_Strict):
    """Which cells a sentence is about: globs over modes, scenarios and points, and a range of versions."""

    modes: tuple[Text, ...] = ("*",)
    scenarios: tuple[Text, ...] = ("*",)
    points: tuple[Text, ...] = ("*",)
    keys: tuple[KeyUse, ...] = ("none", "with")
    versions: Specifier = ""

    def covers(self, version: str, mode: str, scenario: str, point: str, key: KeyUse | None) -> bool:
        """Return whether a cell is among those meant. `key` is None where a rule counts calls."""
        return (
            _any(mode, self.modes)
            and _any(scenario, self.scenarios)
            and _any(point, self.points)
            and (key is None or key in self.keys)
            and in_range(version, self.versions)
        )


class Unsupported(_Cells):
    """What the framework lacks: a scenario, or a capability (`tool-call-id`, `approval`, `session-store`, `resume`)."""

    capability: Text | None = None
    reason: Text
    url: Address
    checked: datetime.date


class Promise(_Cells):
    """A sentence of the docs about an anomaly in some cells."""

    anomalies: tuple[Anomaly, ...]
    stance: Literal["documents", "contradicts"]
    quote: Text
    url: Address
    checked: datetime.date


class Known(_Cells):
    """A control's verdict, known in advance. The first entry that covers a cell holds."""

    verdict: Verdict
    anomalies: tuple[Anomaly, ...] = ()
    score: str | None = None


class Issue(_Strict):
    """A known upstream issue."""

    url: Address
    title: Text


class Adapter(_Strict):
    """What `adapter.toml` says, and the folder it stands in."""

    folder: Path
    name: Text
    package: Text | None = None
    licence: Text
    language: Literal["python", "node"] = "python"
    target: Text
    home: Address | None = None
    docs: Address | None = None
    summary: Text
    control: bool = False
    versions: tuple[Version, ...] = Field(min_length=1)
    modes: dict[Annotated[str, Field(pattern=MODE)], Mode] = Field(min_length=1)
    engines: dict[Annotated[str, Field(pattern=MODE)], Engine] = Field(default_factory=dict)
    unsupported: tuple[Unsupported, ...] = ()
    promises: tuple[Promise, ...] = ()
    issues: tuple[Issue, ...] = ()
    known: tuple[Known, ...] = ()

    @property
    def id(self) -> str:
        """The folder's name: how the command line and results call the adapter."""
        return self.folder.name

    def version(self, version: str) -> Version:
        """Return a version by its text.

        Raises:
            AdapterError: the adapter does not list it.
        """
        for found in self.versions:
            if found.version == version:
                return found
        listed = ", ".join(v.version for v in self.versions)
        raise AdapterError(f"{self.id} has no version {version!r}; it lists {listed}")

    def modes_of(self, version: str) -> tuple[str, ...]:
        """Return the names of the modes that a version has."""
        return tuple(name for name, mode in self.modes.items() if in_range(version, mode.versions))

    def lacks(
        self, version: str, mode: str, scenario: str, point: str, capabilities: tuple[str, ...]
    ) -> Unsupported | None:
        """Return the entry that says why a scenario, or a capability that it needs, is not supported."""
        for entry in self.unsupported:
            named = entry.capability is None or entry.capability in capabilities
            if named and entry.covers(version, mode, scenario, point, None):
                return entry
        return None

    def _cannot_resume(self, mode: str) -> bool:
        return any(
            entry.capability == "resume" and _any(mode, entry.modes) and not entry.versions
            for entry in self.unsupported
        )

    def promise(
        self, anomaly: Anomaly, version: str, mode: str, scenario: str, point: str, key: KeyUse | None
    ) -> Promise | None:
        """Return the sentence about an anomaly in a cell, or None where the docs are silent."""
        for promise in self.promises:
            if anomaly in promise.anomalies and promise.covers(version, mode, scenario, point, key):
                return promise
        return None

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Adapter:
        if self.control != bool(self.known):
            raise ValueError("a control, and only a control, lists [[known]] verdicts")
        for name, mode in self.modes.items():
            if not self.control and (mode.recipe is None) != self._cannot_resume(name):
                raise ValueError(
                    f"modes.{name}.recipe: every mode of a framework needs one, unless [[unsupported]] "
                    'capability = "resume" says that there is no call to resume by'
                )
        if not (self.folder / self.target).is_file():
            raise ValueError(f"target: there is no file {self.target}")
        for name, mode in self.modes.items():
            if mode.engine is not None and mode.engine not in self.engines:
                raise ValueError(f"modes.{name}.engine: there is no [engines.{mode.engine}]")
        for name, engine in self.engines.items():
            if not (self.folder / engine.program).is_file():
                raise ValueError(f"engines.{name}.program: there is no file {engine.program}")
        for version in self.versions:
            if version.lock is not None and not (self.folder / version.lock).is_file():
                raise ValueError(f"versions: {version.version}: there is no lock {version.lock}: compile it")
        return self


def in_range(version: str, specifier: str) -> bool:
    """Return whether a version is in a PEP 440 range; the empty range holds every version."""
    if not specifier:
        return True
    return packaging.specifiers.SpecifierSet(specifier).contains(
        packaging.version.Version(version), prereleases=True
    )


def _any(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def load_adapter(folder: Path) -> Adapter:
    """Return the adapter in a folder.

    Raises:
        AdapterError: there is no `adapter.toml`, it is no TOML, or a field is missing, unknown or wrong.
        AdapterUnfinished: a field is still to be filled in, or the target to be written.
    """
    shown = shown_path(folder)
    data = read_toml(folder)
    gaps = unfilled(data)
    lines = [f"{shown}: {field}: is to be filled in: {how}" for field, how in gaps.items()]
    target = str(data.get("target", ""))
    for number, how in unwritten(folder / target):
        lines.append(f"{shown_path(folder, target)}:{number}: is to be written: {how}")
    unfinished = bool(lines)
    try:
        adapter = Adapter(folder=folder, **data)
    except pydantic.ValidationError as error:
        for fault in error.errors():
            field = ".".join(str(part) for part in fault["loc"])
            if not any(f"{gap}.".startswith(f"{field}.") for gap in gaps):
                said = _REMEDIES.get(fault["type"], fault["msg"])
                lines.append(f"{shown}: {field or 'as a whole'}: {said}")
    except TypeError as error:
        lines.append(f"{shown}: {error}")
    if unfinished:
        raise AdapterUnfinished(folder.name, "\n".join(lines))
    if lines:
        raise AdapterError("\n".join(lines))
    return adapter


def read_toml(folder: Path) -> dict[str, Any]:
    """Return what stands in a folder's `adapter.toml`, not yet validated.

    Raises:
        AdapterError: there is no such file, or it is no TOML.
    """
    file = folder / "adapter.toml"
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AdapterError(f"{shown_path(folder)}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AdapterError(f"{shown_path(folder)}: not valid TOML: {error}") from None


def shown_path(folder: Path, file: str = "adapter.toml") -> str:
    """Return a file of an adapter's folder as messages name it, e.g. `adapters/langgraph/adapter.toml`."""
    return f"{folder.parent.name}/{folder.name}/{file}"


def unfilled(data: object, at: str = "") -> dict[str, str]:
    """Return what is still to be filled in of a parsed `adapter.toml`: how, by field."""
    found: dict[str, str] = {}
    if isinstance(data, dict):
        for name, value in data.items():
            field = f"{at}.{name}" if at else str(name)
            if name == TODO.lower():
                found[field] = "give this table a name of its own"
            found.update(unfilled(value, field))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            found.update(unfilled(value, f"{at}.{number}"))
    elif isinstance(data, str) and data.startswith(TODO):
        found[at] = data.removeprefix(TODO).lstrip(": ")
    return found


def unwritten(target: Path) -> tuple[tuple[int, str], ...]:
    """Return the gaps that a target still has: the number of the line, and what is to be written there."""
    if not target.is_file():
        return ()
    lines = enumerate(target.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
    return tuple(
        (number, line.partition(f"{TODO}: ")[2].rstrip('")')) for number, line in lines if f"{TODO}: " in line
    )


def find_adapters(root: Path) -> dict[str, Adapter]:
    """Return every adapter below `root` (the folder `adapters/`), by name.

    Raises:
        AdapterError: see `load_adapter`.
    """
    return {name: load_adapter(folder) for name, folder in adapter_folders(root).items()}


def adapter_folders(root: Path) -> dict[str, Path]:
    """Return the folders of adapters below `root`, by name, whatever is in them."""
    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith((".", "_")))
    return {folder.name: folder for folder in folders}
