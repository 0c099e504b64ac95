"""The results file, schema 1: its models, reading and writing it, and the frame made from it.

Every field's description stands here: the site's page *Data* and the JSON Schema are generated from it. This module
judges nothing and runs nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from arena.words import Anomaly, Verdict
from harness.history import canonical

if TYPE_CHECKING:
    import pandas

SCHEMA = 1
#: Hexadecimal digits of a SHA-256 that files carry: enough to tell apart what they hold, and half the bytes.
DIGITS = 16
#: Of a trial's digest in its row, which has to differ from its cell's other rows only.
ROW_DIGITS = 10
#: Bytes that a published file may have.
FIT_FOR_GIT = 3_000_000


class ResultsError(Exception):
    """A file that is no results file of this schema; the text names the file, the field and the remedy."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Found(_Model):
    """An anomaly and what the docs say about it."""

    name: Anomaly = Field(description="the anomaly, one of design's words")
    stance: Literal["documents", "contradicts", "silent"] = Field(
        description="whether the framework's docs describe this outcome, promise otherwise, or say nothing"
    )
    promise: str | None = Field(default=None, description="id of the sentence in `promises`")


class Seen(_Model):
    """An outcome that trials of a cell had."""

    verdict: Verdict = Field(description="the trial's verdict")
    anomalies: tuple[Anomaly, ...] = Field(description="what broke")
    exits: tuple[str, ...] = Field(
        description="how each leg ended: `exited 0`, `killed 9`, …; `limit` if one cut it"
    )
    counts: dict[str, int] = Field(
        description="effects and calls by name and arguments; in a keyed cell, records with one key are one"
    )
    checks: dict[str, bool] = Field(description="each kernel check of the trial and whether it held")
    reason: str = Field(default="", description="for an ERROR: why")
    witness: str = Field(description="digest of the full history in `witnesses` that shows this outcome")


class Trials(_Model):
    """How often a cell was run and what came of it."""

    planned: int = Field(description="number of trials fixed before the run")
    passed: int = Field(description="trials that passed, all rounds")
    failed: int = Field(description="trials that failed, all rounds")
    errors: int = Field(description="trials that could not be judged and were not replaced")
    replaced: int = Field(description="ERROR trials that were replaced by another (at most 2)")
    differing: bool = Field(description="whether trials differed in verdict or anomalies")
    k: int = Field(description="failed trials among the `n` that the interval is about")
    n: int = Field(description="trials the interval is about: the fresh ones where trials differed, else all")
    interval: tuple[float, float] | None = Field(
        description="of the probability of failure; null without trials"
    )
    method: str = Field(description="how the interval was computed")
    score: str | None = Field(default=None, description="`k of 8`: items of which every trial passed")
    outcomes: tuple[Seen, ...] = Field(description="the distinct outcomes, worst first")
    rows: tuple[tuple[str, int, int, int], ...] = Field(
        description="one a trial: the beginning of its history's digest, its outcome, its item, its round"
    )


class Leg(_Model):
    """What is known of a leg, from the cell's witness."""

    word: str = Field(description="start, resume or continue")
    version: str | None = Field(default=None, description="the version that the harness read")
    start: str = Field(description="warm or cold")
    hash_seed: str = Field(description="PYTHONHASHSEED")
    why_cold: str | None = Field(default=None, description="why a leg that could start warm did not")
    limit: str | None = Field(default=None, description="which limit ended it, if one did")
    cpu_s: float | None = Field(default=None, description="CPU seconds of the leg")
    state_bytes: int | None = Field(default=None, description="bytes in the working directory when it ended")


class Result(_Model):
    """One cell."""

    id: str = Field(description="hash of the cell's coordinates")
    scenario: str = Field(description="the scenario's name")
    target: str = Field(description="the adapter's name, or the command given to --agent")
    version: str = Field(description="the framework's version")
    mode: str = Field(description="how the framework is made durable")
    kill_point: str = Field(
        description="the scenario's fault point in words; the name stays although not all kill"
    )
    point: str = Field(description="the point as text, with its timing")
    key: Literal["none", "call-id", "other"] | None = Field(
        description="none: every call is an effect; call-id, other: what kind of key the tool sent; null: calls count"
    )
    verdict: Verdict = Field(description="the worst verdict seen")
    detail: str = Field(description="the verdict in a sentence")
    anomalies: tuple[Found, ...] = Field(description="what broke, over all trials, with the docs' stance")
    evidence: dict[str, Any] = Field(
        description="measured values of the witness; what was not measured is absent"
    )
    trials: Trials = Field(description="repeats, outcomes and a row for each trial")
    legs: tuple[Leg, ...] = Field(description="the legs of the witness")
    boundaries: dict[str, int] | None = Field(default=None, description="found and reached, in kill-anywhere")
    barrier: tuple[str, ...] = Field(default=(), description="release reasons of barriers, in the witness")
    mode_read: dict[str, str] | None = Field(
        description="mode asked and found; null if it cannot be read back"
    )
    state_bytes: int | None = Field(description="bytes saved when the first leg ended; null when unknown")
    recipe: str | None = Field(description="id of the recipe in `recipes`")
    workload: str = Field(description="id of the workload")
    policy: int = Field(description="number of the scripted model's policy")
    unsupported: dict[str, str] | None = Field(
        default=None, description="reason, url and date of UNSUPPORTED"
    )
    hashes: dict[str, str] = Field(
        description="first 16 digits of the SHA-256 of target, lock, scenario and harness"
    )
    reproduce: str = Field(description="the command that runs this cell again")


class Overhead(_Model):
    """What a mode's durability costs in time: medians of unharmed runs with it and without it, taken in turns."""

    mode: str = Field(description="the mode")
    baseline: str = Field(description="what ran without durability")
    runs: int = Field(description="runs of each kind")
    seconds: tuple[float, float] = Field(description="seconds of a process, with and without")
    cpu_s: tuple[float, float] = Field(description="CPU seconds of a process, with and without")


class Run(_Model):
    """The run that a file came from."""

    id: str = Field(description="names the run")
    harness_commit: str = Field(
        description="commit of plugpull; `-dirty` if files had changed, `unknown` outside git"
    )
    date: str = Field(description="day the run began, UTC")
    platform: str = Field(description="operating system and processor")
    kernel: str = Field(description="kernel release")
    python: str = Field(description="version of the harness's Python")
    file_system: str = Field(description="of the trials' working directories")
    cores: int = Field(description="cores the harness may use")
    jobs: int = Field(description="trials at once")
    load: tuple[float, float] = Field(description="one-minute load average when the run began and ended")
    sandbox: str = Field(description="what confined the targets")
    leg_limit_s: float = Field(description="seconds each leg may take, unless its mode says otherwise")
    ceiling_s: float = Field(description="seconds after which the run would have been cut")
    engines: tuple[dict[str, str], ...] = Field(
        default=(), description="engine servers with versions and timeouts"
    )
    overheads: tuple[Overhead, ...] = Field(
        default=(), description="what each mode's durability costs in time; absent: not measured"
    )
    controls: dict[str, int] | None = Field(
        description="cells of the controls and how many were as known; null: not run"
    )
    audit: dict[str, int] | None = Field(
        description="cells run cold as well and how many agreed; null: not run"
    )


class Sentence(_Model):
    """A recipe's or a promise's sentence in the docs."""

    quote: str = Field(description="the sentence")
    url: str = Field(description="where it stands")
    checked: str = Field(description="day it was read")
    call: str | None = Field(default=None, description="for a recipe: the call that resumes")


class ResultsFile(_Model):
    """A whole file: one framework, version and run."""

    schema_: Literal[1] = Field(
        alias="schema", description="the number changes when a field is removed or changes meaning"
    )
    run: Run = Field(description="the run")
    results: tuple[Result, ...] = Field(description="the cells")
    recipes: dict[str, Sentence] = Field(default_factory=dict, description="recipes by id")
    promises: dict[str, Sentence] = Field(default_factory=dict, description="promises by id")
    witnesses: dict[str, list[list[Any]]] = Field(
        default_factory=dict,
        description="full histories by digest: [seconds, leg, kind, facts] for each event",
    )


def to_text(file: ResultsFile, *, packed: bool = False) -> str:
    """Return a results file as JSON, one result, recipe, promise or witness a line: fit for git.

    Args:
        file: the results.
        packed: write it without repetition, see `_pack`. Published files are packed; `read_results` unpacks.
    """
    data = file.model_dump(mode="json", by_alias=True, exclude_none=False)
    data["results"] = [_slim(result) for result in data["results"]]
    if not data["run"]["overheads"]:  # absent: not measured
        del data["run"]["overheads"]
    lines = ["{", f'"schema": {data["schema"]},']
    if packed:
        columns = _pack(data)
        lines.append(f'"packed": {_line(columns)},')
    lines.extend((f'"run": {_line(data["run"])},', '"results": ['))
    lines.append(",\n".join(_line(result) for result in data["results"]))
    lines.append("],")
    maps = []
    for name in ("recipes", "promises", "witnesses"):
        inside = ",\n".join(f"{json.dumps(key)}: {_line(value)}" for key, value in sorted(data[name].items()))
        maps.append(f'"{name}": {{\n{inside}\n}}' if inside else f'"{name}": {{}}')
    lines.append(",\n".join(maps))
    lines.append("}")
    return "\n".join(lines) + "\n"


def divided(file: ResultsFile, limit: int = FIT_FOR_GIT) -> tuple[ResultsFile, ...]:
    """Return a file as it is, or its modes in several files of the same run, each at most `limit` bytes when packed.

    A mode is never divided, so a single mode may still be larger.
    """

    def part(modes: list[str]) -> ResultsFile:
        results = tuple(r for r in file.results if r.mode in modes)
        used = {seen.witness for result in results for seen in result.trials.outcomes}
        witnesses = {key: history for key, history in file.witnesses.items() if key in used}
        return file.model_copy(update={"results": results, "witnesses": witnesses})

    def size(some: ResultsFile) -> int:
        return len(to_text(some, packed=True).encode())

    if size(file) <= limit:
        return (file,)
    groups: list[list[str]] = []
    for mode in dict.fromkeys(result.mode for result in file.results):
        if groups and size(part([*groups[-1], mode])) <= limit:
            groups[-1].append(mode)
        else:
            groups.append([mode])
    return tuple(part(group) for group in groups)


#: Fields of a result that are packed field by field, and not as a whole.
_PACKED_INSIDE = ("trials", "evidence")


def _pack(data: dict[str, Any]) -> dict[str, list[str]]:
    """Take out of a file's data what stands there already, and return the columns of its witnesses' events.

    A result leaves out each field that is equal in the result before it, of which most have a twin there: the
    same trials, judged with another use of the key. Rows of trials that differ in their digest only stand together.
    An event [seconds, leg, kind, facts] becomes [seconds, leg, kind,
    value, …], with the names of the values in `packed`, by kind; null is a fact that the event does not have.
    """
    columns: dict[str, list[str]] = {}
    for _, history in sorted(data["witnesses"].items()):
        for _, _, kind, facts in history:
            names = columns.setdefault(kind, [])
            names.extend(name for name in facts if name not in names)
    for key, history in data["witnesses"].items():
        data["witnesses"][key] = [_packed_event(event, columns) for event in history]
    full = data["results"]
    for result in full:
        if result["reproduce"] == _reproduce(result):
            del result["reproduce"]
        result["trials"]["rows"] = _packed_rows(result["trials"]["rows"])
    data["results"] = [
        result if before is None else _without(result, before)
        for before, result in zip([None, *full], full, strict=False)
    ]
    return columns


def _reproduce(result: dict[str, Any]) -> str:
    """Return the command that `arena.cells.Shot.reproduce` gives; packed files leave it out."""
    return (
        f"plugpull run {result['target']}@{result['version']} --scenario {result['scenario']} "
        f"--mode {result['mode']} --at '{result['point']}'"
    )


def _packed_rows(rows: list[list[Any]]) -> list[list[Any]]:
    """Return [outcome, item, round, digest, …] for each run of rows that are alike but for their digest."""
    packed: list[list[Any]] = []
    for digest, *alike in rows:
        if packed and packed[-1][:3] == alike:
            packed[-1].append(digest)
        else:
            packed.append([*alike, digest])
    return packed


def _packed_event(event: list[Any], columns: dict[str, list[str]]) -> list[Any]:
    at, leg, kind, facts = event
    values = [facts.get(name) for name in columns[kind]]
    while values and values[-1] is None:
        values.pop()
    return [at, leg, kind, *values]


def _without(value: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return what differs from `before`; `-` names what is not there any more."""
    packed: dict[str, Any] = {}
    for name, item in value.items():
        if name in _PACKED_INSIDE and name in before:
            packed[name] = _without(item, before[name])
        elif name not in before or item != before[name]:
            packed[name] = item
    gone = [name for name in before if name not in value]
    return {**packed, "-": gone} if gone else packed


def _with(packed: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Undo `_without`."""
    gone = packed.get("-", ())
    value = {name: item for name, item in before.items() if name not in gone}
    for name, item in packed.items():
        if name != "-":
            value[name] = _with(item, before[name]) if name in _PACKED_INSIDE and name in before else item
    return value


def _unpack(data: dict[str, Any]) -> None:
    """Undo `_pack`."""
    columns: dict[str, list[str]] = data.pop("packed")
    for key, history in data["witnesses"].items():
        data["witnesses"][key] = [
            [at, leg, kind, {n: v for n, v in zip(columns[kind], values, strict=False) if v is not None}]
            for at, leg, kind, *values in history
        ]
    before: dict[str, Any] = {}
    results = []
    for packed in data["results"]:
        result = _with(packed, before)
        results.append(result)
        before = {name: value for name, value in result.items() if name != "reproduce"}
        result.setdefault("reproduce", _reproduce(result))
    data["results"] = [
        {**result, "trials": {**result["trials"], "rows": _unpacked_rows(result["trials"]["rows"])}}
        for result in results
    ]


def _unpacked_rows(rows: list[list[Any]]) -> list[list[Any]]:
    return [[digest, *alike[:3]] for alike in rows for digest in alike[3:]]


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _slim(result: dict[str, Any]) -> dict[str, Any]:
    """Leave out what has its default value and says nothing."""
    for name, empty in (("boundaries", None), ("barrier", []), ("unsupported", None)):
        if result[name] == empty:
            del result[name]
    result["legs"] = [{k: v for k, v in leg.items() if v is not None} for leg in result["legs"]]
    return result


def read_results(path: Path) -> ResultsFile:
    """Return a results file.

    Raises:
        ResultsError: no such file, no JSON, another schema, or a field that is missing, unknown or wrong.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise ResultsError(
            f"{path}: schema: this plugpull reads schema {SCHEMA}, the file says {found!r}; use the plugpull that wrote it"
        )
    try:
        if "packed" in data:
            _unpack(data)
        return ResultsFile.model_validate(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, pydantic.ValidationError):
            raise _not_valid(path, error) from None
        raise ResultsError(f"{path}: packed: it cannot be unpacked: {error!r}") from None


def _not_valid(path: Path, error: pydantic.ValidationError) -> ResultsError:
    faults = error.errors()
    shown = [f"{path}: {'.'.join(str(p) for p in fault['loc'])}: {fault['msg']}" for fault in faults[:5]]
    if len(faults) > 5:
        shown.append(f"{path}: and {len(faults) - 5} more")
    return ResultsError("\n".join(shown))


def json_schema() -> str:
    """Return the JSON Schema of a results file, as text."""
    return json.dumps(ResultsFile.model_json_schema(by_alias=True), indent=1) + "\n"


def published(root: Path) -> dict[Path, ResultsFile]:
    """Return every results file below `root`, oldest first."""
    return {
        path: read_results(path) for path in sorted(root.glob("*/*/*.json"), key=lambda p: (p.stem, str(p)))
    }


def frame(root: Path = Path("results"), *, newest_run_only: bool = True) -> pandas.DataFrame:
    """Return the published results as a tidy frame, one row a cell.

    Args:
        root: the folder of the results.
        newest_run_only: keep only the newest file of each framework and version.
    """
    import pandas

    rows = []
    newest: dict[tuple[str, str], str] = {}
    files = published(root)
    for path in files:
        newest[path.parts[-3], path.parts[-2]] = path.stem
    for path, file in files.items():
        if newest_run_only and newest[path.parts[-3], path.parts[-2]] != path.stem:
            continue
        for r in file.results:
            low, high = r.trials.interval or (None, None)
            rows.append(
                {
                    "id": r.id,
                    "target": r.target,
                    "version": r.version,
                    "mode": r.mode,
                    "scenario": r.scenario,
                    "kill_point": r.kill_point,
                    "point": r.point,
                    "timing": r.point.rpartition("@")[2],
                    "key": r.key,
                    "verdict": r.verdict,
                    "anomalies": tuple(found.name for found in r.anomalies),
                    "stances": tuple(found.stance for found in r.anomalies),
                    "planned": r.trials.planned,
                    "k": r.trials.k,
                    "n": r.trials.n,
                    "low": low,
                    "high": high,
                    "score": r.trials.score,
                    "state_bytes": r.state_bytes,
                    "date": file.run.date,
                    "file": str(path),
                }
            )
    return pandas.DataFrame(rows)


def witness_digest(history: list[list[Any]]) -> str:
    """Return the digest under which a history is stored."""
    import hashlib

    return hashlib.sha256(canonical(history).encode()).hexdigest()[:DIGITS]
