"""`plugpull publish`: the gates that a run must pass before its results are written.

One control that is not as known, or one audited cell that does not agree with its cold run, and nothing is
written. Results are append-only: a file that is there is never replaced.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from arena.adapters import Adapter, AdapterError
from arena.cells import Shot, Wanted, select
from arena.journal import Journal, JournalError, Record, journals, read_journal
from arena.overhead import measure_overheads
from arena.progress import progress_to
from arena.results import Result, divided, to_text
from arena.runner import record_of
from arena.scenario import find_scenarios
from arena.session import (
    RunOptions,
    Session,
    execute,
    load,
    new_session,
    open_session,
    prepare_all,
    results_file,
    stderr_console,
    why_lost,
)
from arena.targets import Target, start_engines, trial_plan
from arena.verdicts import FRESH, differs, planned_trials
from arena.verify import verify_file
from harness.engines import Engines
from harness.pool import TrialPool

#: Trials of each control's cell.
CONTROL_TRIALS = 5


def publish_command(
    root: Path, build: Path, run_id: str | None, audited: int, *, partial: bool = False
) -> int:
    """Carry out `plugpull publish` and return its exit status.

    With `partial`, a run that is not complete may be published too: the cells that have all their trials.
    """
    console = stderr_console()
    adapters, _ = load(root)
    session, records = _session_to_publish(root, build, run_id, partial=partial)
    if partial:
        whole = _complete_shots(session, records)
        console.print(f"{len(whole)} of {len(session.shots)} points have all their trials")
        session = replace(session, shots=whole)
    options = RunOptions(
        Wanted(),
        session.trials,
        bool(session.plan["cold"]),
        (os.cpu_count() or 1) + 1,
        float(session.plan["leg_limit_s"]),
        7200.0,
    )
    console.print("controls …")
    wrong, checked = check_controls(root, build, adapters, options, console)
    if wrong:
        for text in wrong:
            console.print(f"control not as known: {text}", markup=False)
        console.print("nothing is published: the harness or the controls are wrong", style="bold")
        return 2
    console.print(f"{checked['cells']} cells of controls are as known")
    by_shot: dict[str, list[Record]] = {}
    for record in records:
        by_shot.setdefault(record.shot, []).append(record)
    targets, failures = prepare_all(session.shots, build, console)
    audits: dict[tuple[str, str], dict[str, int]] = {}
    if audited and not options.cold:
        console.print("audit: warm against cold …")
        disagreeing, audits = audit(session.shots, by_shot, targets, options, audited, console)
        if disagreeing:
            for text in disagreeing:
                console.print(f"audit: {text}", markup=False)
            console.print("nothing is published: warm starts do not behave as cold ones", style="bold")
            return 2
    console.print("what durability costs: each mode with it and without it, in turns …")
    overheads = measure_overheads(session.shots, targets, build, options.ceiling_s)
    written = []
    for key in (*targets, *failures):
        file = results_file(
            root,
            session,
            options,
            by_shot,
            targets,
            controls=checked,
            audit=audits.get(key),
            overheads=overheads.get(key, ()),
            only=key,
            failures=failures,
        )
        if not file.results:
            continue
        differences = verify_file(file, find_scenarios())
        if differences:
            for text in differences[:10]:
                console.print(f"verify: {text}", markup=False)
            return 2
        for part in divided(file):
            path = _free_path(root / "results" / key[0] / key[1], session.plan["date"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(to_text(part, packed=True), encoding="utf-8")
            written.append(path)
    for path in written:
        print(path.relative_to(root))
    return 0


def check_controls(
    root: Path, build: Path, adapters: Mapping[str, Adapter], options: RunOptions, console: Console
) -> tuple[list[str], dict[str, int]]:
    """Run every control and return what is not as known, and how many cells were checked and as known."""
    names = tuple(name for name, adapter in adapters.items() if adapter.control)
    if not names:
        raise AdapterError("adapters/: there is no control; results cannot be published without one")
    # most of a control's time is waiting for limits, so more of them run at once
    jobs = 3 * options.jobs
    controls = replace(options, wanted=Wanted(names), trials=CONTROL_TRIALS, cold=False, jobs=jobs)
    shots = select(controls.wanted, adapters, find_scenarios())
    session = new_session(root, build, shots, controls, folder="controls")
    journal = Journal.begin(session.journal, session.plan)
    try:
        by_shot, targets, failures = execute(root, build, session, controls, journal, (), console)
    finally:
        journal.close()
    file = results_file(root, session, controls, by_shot, targets)
    wrong = [f"{name[0]}: {reason}" for name, reason in failures.items()]
    for result in file.results:
        difference = _difference(adapters[result.target], result)
        if difference:
            wrong.append(difference)
    judged = sum(result.verdict != "UNSUPPORTED" for result in file.results)
    return wrong, {"cells": judged, "as_known": judged - len(wrong)}


def _difference(adapter: Adapter, result: Result) -> str:
    where = f"{result.mode} {result.scenario} {result.point} key={result.key}"
    use = None if result.key is None else "none" if result.key == "none" else "with"
    for known in adapter.known:
        if known.covers(result.version, result.mode, result.scenario, result.point, use):  # type: ignore[arg-type]  # use is a KeyUse
            found = tuple(f.name for f in result.anomalies)
            same = (known.verdict, set(known.anomalies)) == (result.verdict, set(found))
            if same and (known.score is None or known.score == result.trials.score):
                return ""
            return (
                f"{where}: known {known.verdict} {list(known.anomalies)} {known.score or ''}, "
                f"found {result.verdict} {list(found)} {result.trials.score or ''}: {result.detail}"
            )
    return f"{where}: adapter.toml lists no [[known]] verdict for it"


def audit(
    shots: Sequence[Shot],
    by_shot: Mapping[str, Sequence[Record]],
    targets: Mapping[tuple[str, str], Target],
    options: RunOptions,
    audited: int,
    console: Console,
) -> tuple[list[str], dict[tuple[str, str], dict[str, int]]]:
    """Run some cells of each mode cold and return where no warm trial had the same outcome.

    A racy cell agrees when the cold outcome is one of the set that the warm trials showed.
    """
    chosen: list[Shot] = []
    for mode in dict.fromkeys((s.adapter.id, s.version, s.mode) for s in shots):
        mine = [s for s in shots if _auditable(s, mode)]
        resting = [s for s in mine if s.timing == "rest"]
        step = max(1, len(resting) // audited)
        chosen.extend(resting[step - 1 :: step][:audited])
    disagreeing: list[str] = []
    counts: dict[tuple[str, str], dict[str, int]] = {}
    prepared = dict(targets)
    with (
        Engines() as engines,
        TrialPool(2, options.ceiling_s, cold=True) as pool,
        progress_to(console) as watcher,
    ):
        failures = start_engines(chosen, prepared, engines)
        chosen = [shot for shot in chosen if not why_lost(shot, failures)]
        disagreeing.extend(failures.values())
        watcher.planned(len(chosen))
        futures = [
            (shot, pool.submit(trial_plan(shot, 0, 0, prepared, options.leg_limit_s, cold=True, tag="cold")))
            for shot in chosen
        ]
        for shot, future in futures:
            record = record_of(shot, 0, 1, 0, future.result())
            watcher.finished(shot, record)
            warm = {_said(r) for r in by_shot.get(shot.id, ())}
            count = counts.setdefault((shot.adapter.id, shot.version), {"cells": 0, "agreed": 0})
            count["cells"] += 1
            if _said(record) in warm:
                count["agreed"] += 1
            else:
                disagreeing.append(f"{shot.label}: cold {_said(record)}, warm {sorted(warm)}")
    return disagreeing, counts


def _auditable(shot: Shot, mode: tuple[str, str, str]) -> bool:
    same = (shot.adapter.id, shot.version, shot.mode) == mode
    return same and shot.lacking is None and not shot.scenario.explores and not shot.scenario.upgrades


def _said(record: Record) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    return tuple((key, j.verdict, j.anomalies) for key, j in sorted(record.judged.items()))


def _complete_shots(session: Session, records: Sequence[Record]) -> tuple[Shot, ...]:
    """Return the shots that have all the trials that the rules of repeats ask for."""
    by_shot: dict[str, list[Record]] = {}
    for record in records:
        by_shot.setdefault(record.shot, []).append(record)

    def whole(shot: Shot) -> bool:
        mine = by_shot.get(shot.id, [])
        good = [r for r in mine if not r.is_error]
        first, fresh = [r for r in good if r.round == 1], [r for r in good if r.round == 2]
        if fresh or differs(first):
            return len(fresh) >= planned_trials(shot, FRESH)
        return len(first) >= planned_trials(shot, session.trials)

    return tuple(shot for shot in session.shots if shot.lacking is not None or whole(shot))


def _session_to_publish(
    root: Path, build: Path, run_id: str | None, *, partial: bool
) -> tuple[Session, list[Record]]:
    adapters, scenarios = load(root)
    there = journals(build / "runs")
    if run_id is not None:
        there = tuple(path for path in there if path.stem == run_id)
        if not there:
            raise JournalError(f"there is no run {run_id!r} in {build / 'runs'}")
    for path in reversed(there):
        _, _, complete = read_journal(path)
        if complete or partial:
            session, records, _ = open_session(path, adapters, scenarios, root)
            return session, records
        if run_id is not None:
            raise JournalError(f"run {run_id} is not complete; go on with: plugpull run --continue")
    raise JournalError("there is no complete run to publish; start one with: plugpull run")


def _free_path(folder: Path, date: str) -> Path:
    path, number = folder / f"{date}.json", 1
    while path.exists():
        number += 1
        path = folder / f"{date}.{number}.json"
    return path
