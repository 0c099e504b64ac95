"""`make bench`: what a trial costs, warm and cold, with and without the harness, from one run on one machine.

The trial is LangGraph's newest version in `graph-sync`, killed at rest after the charge and resumed. Figures of
different machines must not be compared; the ratios of one run may.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from arena.cells import Shot, Wanted, select
from arena.main import BUILD, ROOT
from arena.session import load
from arena.targets import Target, learn, prepare, trial_plan
from harness.guardian import guarded
from harness.history import History
from harness.launch import CLIENT_DIRECTORY, base_environment
from harness.pool import TrialPool

_WARM, _COLD, _BARE = 96, 4, 3
_SERVER = Path(__file__).with_name("bench_server.py")


def main() -> int:
    """Print the figures, for people and then as one JSON object."""
    adapters, scenarios = load(ROOT)
    adapter = adapters["langgraph"]
    version = adapter.versions[0].version
    wanted = Wanted((f"langgraph@{version}",), ("kill-mid-tool",), ("graph-sync",), ("after-effect@rest",))
    (shot,) = select(wanted, adapters, scenarios)
    target = prepare(adapter, version, BUILD)
    jobs = (os.cpu_count() or 1) + 1
    with TrialPool(jobs, 3600) as pool:
        target = learn(target, ("graph-sync",), BUILD, pool)
        key = (adapter.id, version)
        _run(pool, shot, {key: target}, range(4), cold=False)
        used = _own_cpu()
        began = time.monotonic()
        warm = _run(pool, shot, {key: target}, range(10, 10 + _WARM), cold=False)
        seconds = time.monotonic() - began
        harness = (_own_cpu() - used) / _WARM
    with TrialPool(2, 3600, cold=True) as pool:
        cold = _run(pool, shot, {key: target}, range(_COLD), cold=True)
    figures = {
        "warm_cpu_s": round(_cpu(warm), 4),
        "cold_cpu_s": round(_cpu(cold), 4),
        "ratio": round(_cpu(cold) / _cpu(warm), 1),
        "bare_cpu_s": round(_bare(target), 4),
        "trials_per_s": round(_WARM / seconds, 2),
        "harness_cpu_s": round(harness, 4),
        "harness_share_of_warm": round(harness / _cpu(warm), 3),
        "jobs": jobs,
        "cores": os.cpu_count() or 1,
    }
    print(f"LangGraph {version}, graph-sync, kill-mid-tool after-effect at rest: start, kill, resume")
    print(f"  warm trial            {figures['warm_cpu_s']:.3f} CPU s   ({_WARM} trials)")
    print(f"  cold trial            {figures['cold_cpu_s']:.3f} CPU s   ({_COLD} trials)")
    print(f"  cold : warm           {figures['ratio']:.1f}")
    print(
        f"  bare process          {figures['bare_cpu_s']:.3f} CPU s   (one unharmed run without the harness)"
    )
    print(f"  the harness adds      {figures['harness_cpu_s']:.3f} CPU s   a warm trial")
    print(
        f"  trials a second       {figures['trials_per_s']:.2f}         ({jobs} jobs on {figures['cores']} cores)"
    )
    print(json.dumps(figures))
    return 0


def _run(
    pool: TrialPool,
    shot: Shot,
    targets: dict[tuple[str, str], Target],
    numbers: Sequence[int],
    *,
    cold: bool,
) -> list[History]:
    futures: list[Future[History]] = [
        pool.submit(trial_plan(shot, n, 0, targets, 120, cold=cold, tag="bench")) for n in numbers
    ]
    histories = [future.result() for future in futures]
    for history in histories:
        if history.events[-1].kind != "closed" or history.of("error"):
            raise SystemExit(f"a trial did not run as designed: {history.events[-1]}")
    return histories


def _cpu(histories: Sequence[History]) -> float:
    ends = [event["cpu_s"] for history in histories for event in history.of("leg-ended")]
    return float(sum(ends)) / len(histories)


def _own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _bare(target: Target) -> float:
    """Return the CPU seconds of one unharmed run of the target, started by nothing but `subprocess`.

    Its model and its provider are a process of the standard library that knows the four answers by heart.
    """
    total = 0.0
    for _ in range(_BARE):
        with tempfile.TemporaryDirectory(prefix="plugpull-bare-") as folder:
            address = f"{folder}/provider.sock"
            server = subprocess.Popen(
                [sys.executable, str(_SERVER), address], stdout=subprocess.PIPE, text=True
            )
            assert server.stdout is not None
            try:
                port = server.stdout.readline().strip()
                environment = {
                    **base_environment(Path(folder), target.environment.python.parent),
                    "PYTHONPATH": str(CLIENT_DIRECTORY),
                    "PLUGPULL_PROVIDER": address,
                    "PLUGPULL_WORKDIR": folder,
                    "PLUGPULL_MODE": "graph-sync",
                    "PLUGPULL_PROMPT": "Charge 42 for order-1, then send the receipt.",
                    "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
                    "OPENAI_API_KEY": "none",
                }
                process = subprocess.Popen([*target.command.argv, "start"], env=environment, cwd=folder)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                if status:
                    raise SystemExit(f"the bare run ended with {process.returncode}")
                total += usage.ru_utime + usage.ru_stime
            finally:
                server.kill()
                server.wait()
                server.stdout.close()
    return total / _BARE


if __name__ == "__main__":
    sys.exit(guarded(main))
