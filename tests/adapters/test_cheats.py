"""Cheats: nothing that a target keeps, forges or claims gets it a PASS that it has not earned."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from arena.adapters import Adapter, load_adapter
from arena.cells import Wanted, select
from arena.journal import Record
from arena.runner import record_of
from arena.scenario import find_scenarios
from arena.targets import Target, prepare, trial_plan
from harness.pool import TrialPool

TOML = """
name = "Cheat"
licence = "MIT"
target = "target.py"
summary = "Cheats."
[[versions]]
version = "1"
[modes.plain]
summary = "Cheats."
durable = "nothing"
[modes.plain.recipe]
call = "resume()"
quote = "Resume."
url = "https://example.org"
checked = 2026-11-30
"""
#: A tool that charges at most once, as far as its own proof says, and the rest of the run.
AGENT = """
import json, os, sys
from pathlib import Path
import plugpull
WORK = Path(os.environ["PLUGPULL_WORKDIR"])
def charge(key="k"):
    return plugpull.effect("charge_card", key=key, order="order-1", amount=42)
def finish():
    plugpull.effect("send_receipt", key="r", order="order-1")
    plugpull.answer("order-1 is paid.")
"""
CACHE = """
DONE = set()
def once():
    if "charge" not in DONE:
        DONE.add("charge")
        charge(f"k-{os.getpid()}")
once()
finish()
"""
#: The same, with the cache in a module that a warm server may have imported.
SHARED_CACHE = """
if not getattr(json, "charged", False):
    json.charged = True
    charge(f"k-{os.getpid()}")
finish()
"""
FORGED_FILE = """
proof = WORK / "charge_card.done"
if not proof.exists():
    proof.write_text("charge_card = done [ok-0123456789abcdef]")
    charge()
finish()
"""
FORGED_VERSION = """
plugpull.hello(framework="cheat", version="2")
charge()
finish()
"""
OUTSIDE = """
if os.fork() == 0:
    os.setsid()
    charge()
    os._exit(0)
os.wait()
finish()
"""
ANSWERS_ONLY = """
if sys.argv[1] == "start":
    charge()
plugpull.answer("order-1 is paid.")
"""
#: It sees the fault coming: it leaves before it can be struck.
LEAVES = """
if sys.argv[1] == "start":
    sys.exit(0)
charge()
finish()
"""
#: It charges from a process that has no harness's marker, to be seen by nobody.
UNSEEN = """
if sys.argv[1] == "start":
    charge()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        code = "import time, plugpull; time.sleep(0.3); plugpull.effect('charge_card', order='order-1', amount=42)"
        os.execve(sys.executable, [sys.executable, "-c", code], {
            "PLUGPULL_PROVIDER": os.environ["PLUGPULL_PROVIDER"], "PYTHONPATH": os.path.dirname(plugpull.__file__)})
    os._exit(0)
os.wait()
charge("same")
finish()
"""


def cheat(folder: Path, source: str) -> Adapter:
    made = folder / "adapters" / "cheat"
    made.mkdir(parents=True)
    (made / "adapter.toml").write_text(TOML, encoding="utf-8")
    (made / "target.py").write_text(AGENT + textwrap.dedent(source), encoding="utf-8")
    return load_adapter(made)


def outcomes(
    pool: TrialPool, folder: Path, source: str, point: str, *, warm: bool = False
) -> tuple[Record, set[str]]:
    adapter = cheat(folder, source)
    (shot,) = select(
        Wanted(("cheat",), ("kill-mid-tool",), (), (point,)), {"cheat": adapter}, find_scenarios()
    )
    target: Target = prepare(adapter, "1", folder / "build")
    if warm:
        target = replace(target, command=replace(target.command, preload=("json", "http.client")))
    plan = trial_plan(shot, 0, 0, {("cheat", "1"): target}, 20.0, tag=folder.name.replace("_", "")[-12:])
    record = record_of(shot, 0, 1, 0, pool.submit(plan).result(timeout=240))
    return record, {judged.verdict for judged in record.judged.values()}


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("source", [CACHE, SHARED_CACHE], ids=["module", "shared-module"])
def test_a_module_level_cache_does_not_outlive_the_kill(
    pool: TrialPool, tmp_path: Path, source: str, warm: bool
) -> None:
    record, verdicts = outcomes(pool, tmp_path, source, "after-effect@rest", warm=warm)
    assert verdicts == {"FAIL"}
    assert record.judged["none"].anomalies == ("duplicated",)


def test_a_forged_done_file_loses_the_charge(pool: TrialPool, tmp_path: Path) -> None:
    record, verdicts = outcomes(pool, tmp_path, FORGED_FILE, "before-effect@rest")
    assert verdicts == {"FAIL"}
    assert record.judged["none"].anomalies == ("lost",)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (FORGED_VERSION, "the target says it is version 2"),
        (OUTSIDE, "process group"),
        (LEAVES, "before its point was reached"),
    ],
    ids=["version", "outside", "leaves"],
)
def test_what_breaks_a_rule_of_the_arena_is_an_error(
    pool: TrialPool, tmp_path: Path, source: str, reason: str
) -> None:
    record, verdicts = outcomes(pool, tmp_path, source, "after-effect@rest")
    assert verdicts == {"ERROR"}
    assert reason in record.judged["none"].reason


def test_an_answer_alone_is_no_receipt(pool: TrialPool, tmp_path: Path) -> None:
    record, verdicts = outcomes(pool, tmp_path, ANSWERS_ONLY, "after-effect@rest")
    assert verdicts == {"FAIL"}
    assert record.judged["with"].anomalies == ("lost",)


def test_a_charge_from_a_process_without_the_harnesss_marker_is_counted(
    pool: TrialPool, tmp_path: Path
) -> None:
    record, _ = outcomes(pool, tmp_path, UNSEEN, "before-effect@rest")
    assert record.judged["none"].anomalies == ("duplicated",)
