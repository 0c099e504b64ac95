"""`plugpull run`: prepares targets, runs shots with a journal, shows progress, prints results.

Everything that a run needs from outside comes together here; the parts know nothing of each other.
"""

from __future__ import annotations

import datetime
import fnmatch
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from arena.adapters import Adapter, find_adapters
from arena.boundaries import boundaries
from arena.cells import SelectionError, Shot, Wanted, select
from arena.journal import Journal, JournalError, Record, journals, read_journal
from arena.progress import progress_to
from arena.report import junit_report, print_results
from arena.results import DIGITS, Overhead, Result, ResultsFile, Run, published, to_text
from arena.runner import CeilingReached, run_shots
from arena.scenario import Scenario, find_scenarios
from arena.targets import Target, engine_facts, learn, prepare, start_engines, tree_hash, trial_plan
from arena.verdicts import Sentences, cell_results, failed_results, planned_trials
from harness import kernel
from harness.engines import Engines
from harness.environments import EnvironmentFailed
from harness.pool import TrialPool


@dataclass(frozen=True)
class RunOptions:
    """What `plugpull run` was told."""

    wanted: Wanted
    trials: int
    cold: bool
    jobs: int
    leg_limit_s: float
    ceiling_s: float
    continue_: bool = False
    json: bool = False
    junit: Path | None = None
    strict: bool = False


@dataclass(frozen=True)
class Session:
    """A run with its plan: enough to go on with it and to write its results."""

    id: str
    shots: tuple[Shot, ...]
    plan: dict[str, Any]
    journal: Path

    @property
    def trials(self) -> int:
        """Trials a cell in the first round."""
        return int(self.plan["trials"])


def stderr_console() -> Console:
    """Return the console that progress and messages go to."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def load(root: Path) -> tuple[dict[str, Adapter], dict[str, Scenario]]:
    """Return the adapters and scenarios of a checkout."""
    return find_adapters(root / "adapters"), find_scenarios()


def hashes_of(root: Path, shot: Shot, target: Target) -> dict[str, str]:
    """Return the hashes that a cell's results carry."""
    module = root / "arena" / "scenarios" / f"{shot.scenario.name.replace('-', '_')}.py"
    return {
        **target.hashes,
        "scenario": tree_hash(module.parent, module.name),
        "harness": tree_hash(root / "harness"),
    }


def run_command(root: Path, build: Path, options: RunOptions) -> int:
    """Carry out `plugpull run` and return its exit status."""
    console = stderr_console()
    adapters, scenarios = load(root)
    if options.continue_:
        session, records = _last_unfinished(build, adapters, scenarios, root)
        options = _options_of(session, options)
        journal = Journal.resume(session.journal)
        console.print(f"going on with run {session.id}: {len(records)} trials are done")
    else:
        shots = select(options.wanted, adapters, scenarios)
        _refuse_long_limits(shots, options)
        session = new_session(root, build, shots, options)
        records = []
        journal = Journal.begin(session.journal, session.plan)
    failures: dict[tuple[str, str], str] = {}
    try:
        by_shot, targets, failures = execute(root, build, session, options, journal, records, console)
    except CeilingReached:
        console.print(
            f"the ceiling of {options.ceiling_s:g} s was reached; go on with: plugpull run --continue",
            style="bold",
        )
        return 2
    except KeyboardInterrupt:
        console.print(
            f"\nstopped; every agent has been ended. Go on with: plugpull run --continue  (run {session.id})"
        )
        return 130
    finally:
        journal.close()
    file = results_file(root, session, options, by_shot, targets, failures=failures)
    if options.json:
        sys.stdout.write(to_text(file))
    else:
        print_results(file, Console(highlight=False, soft_wrap=True))
    for (adapter, version), reason in failures.items():
        console.print(f"ERROR {adapter}@{version}: {reason}", markup=False)
    if options.junit is not None:
        options.junit.write_text(junit_report(file), encoding="utf-8")
    verdicts = {result.verdict for result in file.results}
    if failures or "ERROR" in verdicts:
        return 2
    return 1 if options.strict and "FAIL" in verdicts else 0


def execute(
    root: Path,
    build: Path,
    session: Session,
    options: RunOptions,
    journal: Journal,
    done: Sequence[Record],
    console: Console,
) -> tuple[dict[str, list[Record]], dict[tuple[str, str], Target], dict[tuple[str, str], str]]:
    """Prepare what a session needs and run its trials.

    Returns:
        Records by shot; targets by (adapter, version); why a target or an engine of one could not be prepared.
    """
    targets, failures = prepare_all(session.shots, build, console)
    shots = tuple(s for s in session.shots if all((s.adapter.id, v) in targets for v in versions_of(s)))
    with Engines() as engines:
        failures.update(start_engines(shots, targets, engines))
        shots = tuple(s for s in shots if not why_lost(s, failures))
        records = _run(root, build, options, journal, done, console, shots, targets)
    journal.finish()
    return records, targets, failures


def prepare_all(
    shots: Sequence[Shot], build: Path, console: Console
) -> tuple[dict[tuple[str, str], Target], dict[tuple[str, str], str]]:
    """Return the targets that shots need by (adapter, version), and why those that cannot be had cannot."""
    targets: dict[tuple[str, str], Target] = {}
    failures: dict[tuple[str, str], str] = {}
    for shot in shots:
        for version in versions_of(shot):
            key = (shot.adapter.id, version)
            if key not in targets and key not in failures:
                if shot.adapter.version(version).lock:
                    console.print(f"environment of {shot.adapter.id}@{version} …", style="dim")
                try:
                    targets[key] = prepare(shot.adapter, version, build)
                except EnvironmentFailed as error:
                    failures[key] = str(error)
    return targets, failures


def _run(
    root: Path,
    build: Path,
    options: RunOptions,
    journal: Journal,
    done: Sequence[Record],
    console: Console,
    shots: tuple[Shot, ...],
    targets: dict[tuple[str, str], Target],
) -> dict[str, list[Record]]:
    scrub = tuple((str(t.environment.directory), "<environment>") for t in targets.values())
    scrub += ((str(root), "<plugpull>"), (sys.base_prefix, "<python>"), (str(Path.home()), "<home>"))
    with TrialPool(options.jobs, options.ceiling_s, cold=options.cold, scrub=scrub) as pool:
        if not options.cold:
            for key, target in targets.items():
                mine = [s for s in shots if s.adapter.id == key[0] and key[1] in versions_of(s)]
                targets[key] = learn(target, sorted({s.mode for s in mine}), build, pool)
        found = find_boundaries(shots, targets, pool, options.leg_limit_s)
        with progress_to(console) as watcher:
            return run_shots(
                shots,
                targets,
                pool,
                journal,
                watcher,
                trials=options.trials,
                jobs=options.jobs,
                leg_limit_s=options.leg_limit_s,
                done=done,
                ever_differed=ever_differed(root, shots, targets),
                boundaries=found,
                cold=options.cold,
            )


def why_lost(shot: Shot, failures: Mapping[tuple[str, str], str]) -> str | None:
    """Return why a shot cannot be run: an environment or an engine server that is missing; or None."""
    needs = [*versions_of(shot), f"engine {shot.adapter.modes[shot.mode].engine}"]
    return next(
        (failures[shot.adapter.id, need] for need in needs if (shot.adapter.id, need) in failures), None
    )


def versions_of(shot: Shot) -> tuple[str, ...]:
    """Return the versions that a shot's legs run under."""
    if shot.scenario.upgrades and shot.other_version is not None:
        return shot.version, shot.other_version
    return (shot.version,)


def find_boundaries(
    shots: Sequence[Shot], targets: Mapping[tuple[str, str], Target], pool: TrialPool, leg_limit_s: float
) -> dict[str, tuple[str, ...]]:
    """Run each shot that is to be explored once, unharmed, and return its boundaries by the shot's id."""
    exploring = [shot for shot in shots if shot.scenario.explores and not shot.lacking]
    futures = {
        shot.id: (shot, pool.submit(trial_plan(shot, 0, 0, targets, leg_limit_s, tag="unharmed")))
        for shot in exploring
    }
    return {
        key: tuple(p for p in boundaries(future.result()) if fnmatch.fnmatchcase(p, shot.case.boundaries))
        for key, (shot, future) in futures.items()
    }


def ever_differed(
    root: Path, shots: Sequence[Shot], targets: Mapping[tuple[str, str], Target]
) -> frozenset[str]:
    """Return the ids of shots whose published trials once differed under the same lock."""
    locks = {
        cell: result.hashes["lock"]
        for file in published(root / "results").values()
        for result in file.results
        if result.trials.differing
        for cell in (result.id,)
    }
    return frozenset(
        shot.id
        for shot in shots
        for key in shot.keys
        if locks.get(shot.cell_id(key), "")[:DIGITS]
        == targets[shot.adapter.id, shot.version].hashes["lock"][:DIGITS]
    )


def results_file(
    root: Path,
    session: Session,
    options: RunOptions,
    by_shot: Mapping[str, Sequence[Record]],
    targets: Mapping[tuple[str, str], Target],
    *,
    controls: dict[str, int] | None = None,
    audit: dict[str, int] | None = None,
    overheads: Sequence[Overhead] = (),
    only: tuple[str, str] | None = None,
    failures: Mapping[tuple[str, str], str] | None = None,
) -> ResultsFile:
    """Return the results of a session, of one adapter and version if `only` is given.

    A shot whose environment could not be made (`failures`) is there as an ERROR.
    """
    sentences, witnesses = Sentences(), dict[str, list[list[Any]]]()
    results: list[Result] = []
    for shot in session.shots:
        key = (shot.adapter.id, shot.version)
        if only is not None and key != only:
            continue
        planned = planned_trials(shot, session.trials)
        lost = why_lost(shot, failures or {})
        if lost or key not in targets:
            reason = lost.partition("; uv said")[0] if lost else "its environment is missing"
            hashes = {"harness": tree_hash(root / "harness")}
            results.extend(failed_results(shot, reason, planned, hashes, sentences))
            continue
        results.extend(
            cell_results(
                shot,
                by_shot.get(shot.id, []),
                planned,
                hashes_of(root, shot, targets[key]),
                sentences,
                witnesses,
            )
        )
    plan = session.plan
    return ResultsFile(
        schema=1,
        run=Run(
            id=session.id,
            harness_commit=plan["commit"],
            date=plan["date"],
            platform=f"{platform.system()} {platform.machine()}",
            kernel=platform.release(),
            python=platform.python_version(),
            file_system=plan["file_system"],
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            jobs=options.jobs,
            load=(plan["load"], round(os.getloadavg()[0], 2)),
            sandbox="none: own session and process group, no environment of the harness",
            leg_limit_s=options.leg_limit_s,
            ceiling_s=options.ceiling_s,
            engines=engine_facts(session.shots, targets, only),
            overheads=tuple(overheads),
            controls=controls,
            audit=audit,
        ),
        results=tuple(results),
        recipes=sentences.recipes,
        promises=sentences.promises,
        witnesses=witnesses,
    )


# --- sessions ----------------------------------------------------------------------------------------


def _refuse_long_limits(shots: Sequence[Shot], options: RunOptions) -> None:
    if options.leg_limit_s > options.ceiling_s:
        raise SelectionError(
            f"--leg-limit {options.leg_limit_s:g} is longer than --ceiling {options.ceiling_s:g}: "
            "the ceiling would cut a leg before its own limit; raise the ceiling or lower the limit"
        )
    for shot in shots:
        limit = shot.adapter.modes[shot.mode].leg_limit_s
        if limit is not None and limit > options.ceiling_s:
            raise SelectionError(
                f"adapters/{shot.adapter.id}/adapter.toml: modes.{shot.mode}.leg_limit_s: {limit:g} is longer than "
                f"--ceiling {options.ceiling_s:g}; raise the ceiling"
            )


def commit_of(root: Path) -> str:
    """Return the commit of the checkout, with `-dirty` if code has changed since; `unknown` outside git."""
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "arena", "harness", "adapters"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("-dirty" if changed else "")


def code_hash(root: Path, shots: Sequence[Shot]) -> str:
    """Return the hash of everything that decides what these shots' trials do and how they are judged."""
    folders = sorted({shot.adapter.folder for shot in shots})
    parts = [tree_hash(root / "harness"), tree_hash(root / "arena" / "scenarios")]
    parts.extend(tree_hash(folder, "*") for folder in folders)
    return "-".join(part[:12] for part in parts)


def new_session(
    root: Path, build: Path, shots: tuple[Shot, ...], options: RunOptions, folder: str = "runs"
) -> Session:
    """Return a new run: its id, what it will do, and where its journal is going to be."""
    import tempfile

    now = datetime.datetime.now(datetime.UTC)
    run_id = now.strftime("%Y%m%d-%H%M%S") + f"-{os.getpid()}"
    plan = {
        "id": run_id,
        "date": now.date().isoformat(),
        "wanted": asdict(options.wanted),
        "trials": options.trials,
        "cold": options.cold,
        "leg_limit_s": options.leg_limit_s,
        "commit": commit_of(root),
        "code": code_hash(root, shots),
        "file_system": kernel.filesystem_of(tempfile.gettempdir()),
        "load": round(os.getloadavg()[0], 2),
        "began": time.time(),
    }
    return Session(run_id, shots, plan, build / folder / f"{run_id}.jsonl")


def open_session(
    path: Path, adapters: Mapping[str, Adapter], scenarios: Mapping[str, Scenario], root: Path
) -> tuple[Session, list[Record], bool]:
    """Return the session of a journal, its records, and whether it is complete.

    Raises:
        JournalError: the code has changed since, so old and new trials would not be of one kind.
    """
    plan, records, complete = read_journal(path)
    asked = dict(plan["wanted"])
    full = bool(asked.pop("full", False))
    wanted = Wanted(**{name: tuple(values) for name, values in asked.items()}, full=full)
    shots = select(wanted, adapters, scenarios)
    if plan["code"] != code_hash(root, shots):
        raise JournalError(
            f"run {plan['id']}: the harness, a scenario or its adapters have changed since it began; start a new run"
        )
    return Session(plan["id"], shots, plan, path), list(records), complete


def _last_unfinished(
    build: Path, adapters: Mapping[str, Adapter], scenarios: Mapping[str, Scenario], root: Path
) -> tuple[Session, list[Record]]:
    for path in reversed(journals(build / "runs")):
        try:
            _, _, complete = read_journal(path)
        except JournalError:
            continue
        if not complete:
            session, records, _ = open_session(path, adapters, scenarios, root)
            return session, records
    raise JournalError("there is no unfinished run to go on with; start one with: plugpull run")


def _options_of(session: Session, options: RunOptions) -> RunOptions:
    return RunOptions(
        wanted=Wanted(),
        trials=session.trials,
        cold=bool(session.plan["cold"]),
        jobs=options.jobs,
        leg_limit_s=float(session.plan["leg_limit_s"]),
        ceiling_s=options.ceiling_s,
        json=options.json,
        junit=options.junit,
        strict=options.strict,
    )
