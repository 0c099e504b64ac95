"""Made-up results and adapters for tests of the site: whole roots on disk, with the real scenarios' points."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from arena.cells import coordinates_id
from arena.results import (
    Found,
    Leg,
    Overhead,
    Result,
    ResultsFile,
    Run,
    Seen,
    Sentence,
    Trials,
    to_text,
    witness_digest,
)
from arena.statistics import interval
from arena.words import Anomaly, Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
Key = Literal["none", "call-id", "other"] | None
CHARGE = 'charge_card{"amount":42,"order":"order-1"}'
RECEIPT = 'send_receipt{"order":"order-1"}'
PROMISE = "a-promise"
RECIPE = "a-recipe"
CALL = 'graph.invoke(None, config, durability="sync")'


def history(charges: int = 1, name: str = "charge_card") -> list[list[Any]]:
    """Return a short history: killed at the charge, resumed."""
    rows: list[list[Any]] = [
        [0.01, 0, "leg-started", {"word": "start", "pid": 7, "start": "warm", "hash_seed": "1"}]
    ]
    arguments = {"order": "order-1", "amount": 42}
    for number in range(charges):
        rows.append([0.1 + number / 10, min(number, 1), "recorded", {"name": name, "arguments": arguments}])
    rows.append([0.4, 0, "struck", {"action": "kill", "signal": 9, "group": 7, "rested": True}])
    rows.append([0.9, None, "closed", {}])
    return rows


def result(
    *,
    target: str = "alpha",
    version: str = "2.0",
    mode: str = "sync",
    scenario: str = "kill-mid-tool",
    kill_point: str = "after-effect",
    point: str = "effect:charge_card#1.after@rest",
    key: Key = "none",
    verdict: Verdict = "PASS",
    anomalies: Iterable[Anomaly] = (),
    stance: Literal["documents", "contradicts", "silent"] = "documents",
    failed: int | None = None,
    n: int = 20,
    counts: Mapping[str, int] | None = None,
    score: str | None = None,
    detail: str = "charge_card 1 x; legs: killed 9, exited 0",
    witness: str = "",
) -> Result:
    """Return a result; a FAIL fails in every trial unless `failed` says otherwise."""
    names = tuple(anomalies)
    if verdict == "FAIL" and not names:
        names = ("duplicated",)
    k = (n if failed is None else failed) if verdict == "FAIL" else 0
    if verdict in ("ERROR", "UNSUPPORTED"):
        n = 0
    if counts is None:
        counts = {CHARGE: 2 if "duplicated" in names else 0 if "lost" in names else 1, RECEIPT: 1}
    outcomes = (
        Seen(
            verdict=verdict,
            anomalies=names,
            exits=("killed 9", "exited 0"),
            counts=dict(counts),
            checks={"open": verdict != "ERROR"},
            reason="a check failed" if verdict == "ERROR" else "",
            witness=witness or witness_digest(history(2 if "duplicated" in names else 1)),
        ),
    )
    return Result(
        id=coordinates_id({"all": [target, version, mode, scenario, point, key]}),
        scenario=scenario,
        target=target,
        version=version,
        mode=mode,
        kill_point=kill_point,
        point=point,
        key=key,
        verdict=verdict,
        detail=detail,
        anomalies=tuple(
            Found(name=name, stance=stance, promise=None if stance == "silent" else PROMISE) for name in names
        ),
        evidence={
            "kill": {"group": 7, "status": "killed 9", "rested": True},
            "stderr": "Traceback: it broke",
        },
        trials=Trials(
            planned=n,
            passed=n - k,
            failed=k,
            errors=3 if verdict == "ERROR" else 0,
            replaced=0,
            differing=0 < k < n,
            k=k,
            n=n,
            interval=interval(k, n) if n else None,
            method="Clopper-Pearson 95 %",
            score=score,
            outcomes=() if verdict == "UNSUPPORTED" else outcomes,
            rows=(),
        ),
        legs=(Leg(word="start", start="warm", hash_seed="1", cpu_s=0.08, state_bytes=4096),),
        mode_read={"asked": "wal", "found": "wal"},
        state_bytes=4096,
        recipe=RECIPE,
        workload="order-1-42-receipt",
        policy=1,
        unsupported={"reason": "it has none", "url": "https://example.org/docs", "checked": "2026-11-30"}
        if verdict == "UNSUPPORTED"
        else None,
        hashes={"target": "0" * 64},
        reproduce=f"plugpull run {target}@{version} --scenario {scenario} --mode {mode} --at '{point}'",
    )


def file(
    results: Iterable[Result], *, run: str = "20261130-000000-1", date: str = "2026-11-30"
) -> ResultsFile:
    """Return a results file with some results, and every witness that they may name."""
    histories = (history(1), history(2))
    return ResultsFile(
        schema=1,
        run=Run(
            id=run,
            harness_commit="0123abc",
            date=date,
            platform="Linux x86_64",
            kernel="6.18",
            python="3.11.7",
            file_system="ext4",
            cores=2,
            jobs=3,
            load=(0.1, 0.2),
            sandbox="none",
            leg_limit_s=60.0,
            ceiling_s=7200.0,
            overheads=(
                Overhead(
                    mode="sync", baseline="no transcript", runs=11, seconds=(0.3, 0.2), cpu_s=(0.12, 0.1)
                ),
            ),
            controls={"cells": 10, "as_known": 10},
            audit=None,
        ),
        results=tuple(results),
        recipes={
            RECIPE: Sentence(
                quote="Resume by it.", url="https://example.org/r", checked="2026-11-30", call=CALL
            )
        },
        promises={
            PROMISE: Sentence(quote="It may run again.", url="https://example.org/p", checked="2026-11-30")
        },
        witnesses={witness_digest(h): h for h in histories},
    )


def write(root: Path, made: ResultsFile, target: str, version: str, name: str = "2026-11-30") -> None:
    """Write a results file below a root."""
    path = root / "results" / target / version / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_text(made), encoding="utf-8")


def adapter(
    root: Path, name: str, modes: Iterable[str], versions: Iterable[str], title: str | None = None
) -> None:
    """Write an adapter below a root."""
    folder = root / "adapters" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "target.py").write_text("", encoding="utf-8")
    lines = [
        f"name = {json.dumps(title or name.title())}",
        'licence = "MIT"',
        'target = "target.py"',
        'home = "https://example.org/home"',
        'summary = "A made-up framework."',
    ]
    lines += [f'[[versions]]\nversion = "{version}"' for version in versions]
    for mode in modes:
        lines.append(
            f'[modes.{mode}]\nsummary = "Saves."\ndurable = "a file"\n[modes.{mode}.recipe]\n'
            f'call = {json.dumps(CALL)}\nquote = "Resume by it."\n'
            'url = "https://example.org/r"\nchecked = 2026-11-30'
        )
    (folder / "adapter.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def empty_root(root: Path) -> Path:
    """Make a root with the repository's `site/` and nothing else."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "site").symlink_to(REPOSITORY / "site")
    return root


def grid(
    target: str,
    version: str,
    modes: Iterable[str],
    scenarios: Mapping[str, Iterable[tuple[str, str, bool]]],
    *,
    shift: int = 0,
) -> tuple[Result, ...]:
    """Return results for every mode, scenario, point and key, with a pattern of outcomes that is always the same.

    Args:
        scenarios: for each, its points as (name, point with timing, whether the key is a dimension).
        shift: moves the pattern, so that versions differ.
    """
    made: list[Result] = []
    for number, mode in enumerate(modes):
        step = itertools.count(number)
        for scenario, points in scenarios.items():
            for name, point, keyed in points:
                keys: tuple[Key, ...] = ("none", "call-id") if keyed else (None,)
                for key in keys:
                    turn = (next(step) * 7 + shift) % 11
                    what: dict[str, Any] = {}
                    if turn in (0, 4) and key != "call-id":
                        what = {"verdict": "FAIL", "anomalies": ("duplicated",), "stance": "documents"}
                    elif turn == 2:
                        what = {"verdict": "FAIL", "anomalies": ("lost", "run-lost"), "stance": "contradicts"}
                    elif turn == 6:
                        what = {
                            "verdict": "FAIL",
                            "anomalies": ("replayed",),
                            "failed": 7,
                            "n": 100,
                            "stance": "silent",
                        }
                    elif turn == 8:
                        what = {"verdict": "ERROR"}
                    elif turn == 10:
                        what = {"verdict": "UNSUPPORTED"}
                    made.append(
                        result(
                            target=target,
                            version=version,
                            mode=mode,
                            scenario=scenario,
                            kill_point=name,
                            point=point,
                            key=key,
                            **what,
                        )
                    )
    return tuple(made)


def real_points() -> dict[str, list[tuple[str, str, bool]]]:
    """Return the points of every scenario that there is."""
    from arena.scenario import find_scenarios

    return {
        name: [
            (case.name, f"{case.point}@{timing}", scenario.keys == "both")
            for case in scenario.cases
            for timing in case.timings
        ]
        for name, scenario in find_scenarios().items()
    }


def sample_root(root: Path) -> Path:
    """Make a root with two frameworks, two versions of one, two runs of one version, and the real scenarios."""
    empty_root(root)
    points = real_points()
    adapter(root, "alpha", ("sync", "async", "exit"), ("2.0", "1.0"))
    adapter(root, "beta", ("only",), ("0.1",))
    adapter(root, "gamma", ("untested",), ("9.0",))
    write(root, file(grid("alpha", "1.0", ("sync", "async", "exit"), points, shift=3)), "alpha", "1.0")
    older = file(
        grid("alpha", "2.0", ("sync", "async", "exit"), points, shift=1), run="r-1", date="2026-11-29"
    )
    write(root, older, "alpha", "2.0", "2026-11-29")
    write(root, file(grid("alpha", "2.0", ("sync", "async", "exit"), points)), "alpha", "2.0")
    write(root, file(grid("beta", "0.1", ("only",), points, shift=5)), "beta", "0.1")
    return root
