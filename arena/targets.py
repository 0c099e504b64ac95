"""Prepared targets: an adapter's version with its environment, its command and what warm starts preload.

Knows adapters and the harness; knows no scenario's rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from arena.adapters import Adapter, AdapterError
from arena.cells import Shot
from arena.scenario import Leg
from harness.engines import EngineFailed, Engines
from harness.environments import Environment, EnvironmentFailed, ensure_environment, own_environment
from harness.history import History
from harness.launch import Command, learn_argv
from harness.model import Ask, Question, Workload
from harness.plan import Audit, LegPlan, Readback, TrialPlan
from harness.pool import TrialPool

#: One unharmed run with every tool: what it loads is what warm starts preload.
LEARNING = Workload(
    "learning",
    (
        Question(
            "Do a bit of everything.",
            (
                (Ask("lookup", {"fact": "a"}),),
                (Ask("calculator", {"expression": "1 + 1"}),),
                (Ask("charge_card", {"order": "order-0", "amount": 1}),),
                (Ask("send_receipt", {"order": "order-0"}),),
            ),
            "done",
        ),
    ),
)
#: Folders that tools leave beside sources.
_PASSED_OVER = frozenset(("__pycache__", ".mypy_cache", ".ruff_cache"))


@dataclass(frozen=True, slots=True)
class Target:
    """A version of an adapter, ready to run.

    Attributes:
        adapter: the adapter.
        version: the version asked for; the harness has read the same from the environment's metadata.
        environment: its environment.
        command: how to start it.
        engines: where the engine servers that its modes need listen, by name.
    """

    adapter: Adapter
    version: str
    environment: Environment
    command: Command
    engines: Mapping[str, str] = field(default_factory=dict)

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the target's file and of its lock."""
        return {
            "target": file_hash(self.adapter.folder / self.adapter.target),
            "lock": self.environment.lock_digest or "none",
        }


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tree_hash(folder: Path, pattern: str = "*.py") -> str:
    """Return the SHA-256 of the files below a folder, names included."""
    digest = hashlib.sha256()
    files = (
        p for p in sorted(folder.rglob(pattern)) if p.is_file() and not _PASSED_OVER.intersection(p.parts)
    )
    for path in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def prepare(adapter: Adapter, version: str, build: Path) -> Target:
    """Return a version's target, making its environment first when it is not there.

    Args:
        adapter: the adapter.
        version: one of its versions.
        build: the folder `build/`.

    Raises:
        EnvironmentFailed: the environment cannot be made, or holds another version than the one asked for.
    """
    listed = adapter.version(version)
    if listed.lock is None:
        environment = own_environment()
    else:
        environment = ensure_environment(
            build / "environments", f"{adapter.id}-{version}", adapter.folder / listed.lock
        )
    if adapter.package is not None:
        found = environment.version_of(adapter.package)
        if found != version:
            raise EnvironmentFailed(
                f"{adapter.id}@{version}: the environment holds {adapter.package} {found}; correct {listed.lock}"
            )
    if adapter.language != "python":
        raise AdapterError(
            f"adapters/{adapter.id}/adapter.toml: language: only python targets can run so far"
        )
    target = (adapter.folder / adapter.target).resolve()
    command = Command((str(environment.python), str(target)), environment.interpreter)
    return Target(adapter, version, environment, command)


def learn(target: Target, modes: Iterable[str], build: Path, pool: TrialPool) -> Target:
    """Return the target with the modules that warm starts preload.

    Each mode runs once, unharmed and cold, and the modules it had loaded at its end are kept beside the
    environment. A mode whose run does not finish teaches nothing; if none does, the target only starts cold.
    """
    folder = build / "learned" / f"{target.adapter.id}-{target.version}-{target.environment.lock_digest[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    digest = tree_hash(target.adapter.folder, "*.py")[:12]
    waiting = {}
    for mode in modes:
        file = folder / f"{mode}-{digest}.txt"
        if not file.exists():
            fresh = file.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            leg = LegPlan("start", Command(learn_argv(target.command, fresh), target.command.interpreter))
            plan = TrialPlan(
                f"learn-{target.adapter.id}-{target.version}-{mode}".replace(".", "-"),
                LEARNING,
                ((leg,),),
                {"a": "1"},
                {"PLUGPULL_MODE": mode, **engine_variables(target, mode, f"learn-{mode}-{target.version}")},
                cold=True,
            )
            waiting[mode] = (pool.submit(plan), fresh, file)
    for future, fresh, file in waiting.values():
        history = future.result()
        if finished(history) and fresh.exists():
            fresh.replace(file)
        else:
            file.write_text("", encoding="utf-8")
    names: dict[str, None] = {}
    for mode in sorted(modes):
        names.update(dict.fromkeys((folder / f"{mode}-{digest}.txt").read_text(encoding="utf-8").split()))
    if not names:
        return target
    return replace(target, command=replace(target.command, preload=tuple(names)))


def start_engines(
    shots: Sequence[Shot], targets: dict[tuple[str, str], Target], engines: Engines
) -> dict[tuple[str, str], str]:
    """Start each engine server that the shots' modes need, once for an adapter, and tell its targets the address.

    The server of the newest version among the targets serves them all: in production, too, it outlives upgrades.

    Returns:
        Why an engine could not be started, by (adapter, `engine NAME`).
    """
    failures: dict[tuple[str, str], str] = {}
    needed = {
        (shot.adapter.id, engine): shot.adapter
        for shot in shots
        if not shot.lacking and (engine := shot.adapter.modes[shot.mode].engine)
    }
    for (adapter_id, name), adapter in needed.items():
        mine = {
            v.version: targets[adapter_id, v.version]
            for v in adapter.versions
            if (adapter_id, v.version) in targets
        }
        package = adapter.engines[name].package
        able = [target for target in mine.values() if target.environment.version_of(package)]
        try:
            if not able:
                raise EngineFailed(f"engine {name}: no lock of {adapter_id} installs {package}")
            program = (adapter.folder / adapter.engines[name].program).resolve()
            argv = (str(able[0].environment.python), str(program))
            address = engines.start(f"{name} of {adapter_id}", argv).address
        except EngineFailed as error:
            failures[adapter_id, f"engine {name}"] = str(error)
            continue
        for version, target in mine.items():
            targets[adapter_id, version] = replace(target, engines={**target.engines, name: address})
    return failures


def engine_facts(
    shots: Sequence[Shot], targets: Mapping[tuple[str, str], Target], only: tuple[str, str] | None = None
) -> tuple[dict[str, str], ...]:
    """Return what results say of the engine servers that shots needed; versions are from environments' metadata."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for shot in shots:
        name, key = shot.adapter.modes[shot.mode].engine, (shot.adapter.id, shot.version)
        if name is None or shot.lacking or key not in targets or (only is not None and key != only):
            continue
        engine = shot.adapter.engines[name]
        version = targets[key].environment.version_of(engine.package)
        found[shot.adapter.id, name] = {
            "name": name,
            "adapter": shot.adapter.id,
            "package": engine.package,
            "version": version or "unknown",
            "timeouts": engine.timeouts,
        }
    return tuple(found.values())


def engine_variables(target: Target, mode: str, trial: str) -> dict[str, str]:
    """Return what a leg is told of its mode's engine: the address, and a name that no other trial has there."""
    name = target.adapter.modes[mode].engine
    if name is None:
        return {}
    return {"PLUGPULL_ENGINE": target.engines[name], "PLUGPULL_TRIAL": trial.replace(".", "-")}


def finished(history: History) -> bool:
    """Return whether a run of one leg ended well, with an answer."""
    ends = history.of("leg-ended")
    return bool(ends) and ends[-1]["status"] == 0 and bool(history.of("answer")) and not history.of("error")


def trial_plan(
    shot: Shot,
    number: int,
    item_index: int,
    targets: Mapping[tuple[str, str], Target],
    leg_limit_s: float,
    *,
    cold: bool = False,
    tag: str = "t",
    boundary: str | None = None,
) -> TrialPlan:
    """Return the plan of one trial of a shot.

    Args:
        shot: the coordinates.
        number: the trial's number within its shot; part of its id.
        item_index: which of the scenario's items it runs.
        targets: prepared targets by (adapter, version).
        leg_limit_s: seconds for each leg, unless the mode declares another limit.
        cold: execute a new interpreter for each leg.
        tag: begins the trial's id, so that an audit's trials differ from the run's.
        boundary: where a trial of an exploring scenario strikes; without it such a trial runs unharmed.
    """
    mode = shot.adapter.modes[shot.mode]
    item = shot.scenario.items[item_index]

    def leg(planned: Leg) -> LegPlan:
        version = shot.other_version if planned.elsewhere else shot.version
        assert version is not None
        environment: dict[str, str] = {"PLUGPULL_DECISION": planned.decision} if planned.decision else {}
        if planned.question:
            environment["PLUGPULL_PROMPT"] = item.workload.questions[planned.question].prompt
        return LegPlan(
            planned.word,
            targets[shot.adapter.id, version].command,
            Audit(version, shot.adapter.package or shot.adapter.id),
            tuple(strike.fault(shot.timing, boundary) for strike in planned.strikes),
            environment,
            planned.only,
            planned.wakes,
        )

    stages = shot.case.stages
    if shot.scenario.explores and boundary is None:
        stages = ((Leg("start"),),)
    readback = mode.readback
    environment = {"PLUGPULL_MODE": shot.mode}
    if shot.case.approval:
        environment["PLUGPULL_APPROVAL"] = "required"
    if shot.case.store:
        environment["PLUGPULL_STORE"] = "provider"
        environment["PLUGPULL_STAGED_INPUT"] = f"And one more thing: {shot.id}-{number}."
    trial = f"{tag}{shot.id}-{number}"
    environment.update(engine_variables(targets[shot.adapter.id, shot.version], shot.mode, trial))
    return TrialPlan(
        trial,
        item.workload,
        tuple(tuple(leg(planned) for planned in stage) for stage in stages),
        item.facts,
        environment,
        mode.leg_limit_s or leg_limit_s,
        cold,
        Readback(readback.file, readback.sqlite_pragma, readback.expect) if readback else None,
        mode.engine is not None,
    )
