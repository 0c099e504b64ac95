"""`make mutants`: breaks plugpull in the ways of `breaks.py` and shows what notices each.

Every mutant is a copy of the checkout with one wrong line. The tests of the harness and the arena run over it until
one fails; if none does, the controls that publishing runs have their say. A mutant that nobody notices survives, and
the command ends with 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.breaks import BREAKS, Break

ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("arena", "harness", "adapters", "tests", "results", "site")
#: Quick ones first: most mutants never see the slow ones.
_TESTS = (
    "tests/harness/test_model.py",
    "tests/arena/test_checkers.py",
    "tests/arena/test_verdicts.py",
    "tests/harness/test_kill.py",
    "tests/harness/test_faults.py",
    "tests/harness/test_world.py",
    "tests/harness/test_left_behind.py",
    "tests/harness",
    "tests/arena/test_runner.py",
    "tests/arena/test_verify.py",
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_LIMIT_S = 900
_GATE = """
import sys
from pathlib import Path
from arena.cells import Wanted
from arena.publishing import check_controls
from arena.session import RunOptions, load, stderr_console
from harness.guardian import guarded
root = Path(sys.argv[1])
options = RunOptions(Wanted(), 2, False, 4, 60.0, 1800.0)
def gate():
    wrong, _ = check_controls(root, root / "build", load(root)[0], options, stderr_console())
    print("\\n".join(wrong))
    return 1 if wrong else 0
sys.exit(guarded(gate))
"""


def main() -> int:
    """Run every mutant, or those whose names contain the words given, and return how many survived."""
    words = sys.argv[1:]
    chosen = [b for b in BREAKS if not words or any(word in b.name for word in words)]
    survived = []
    for number, broken in enumerate(chosen, 1):
        began = time.monotonic()
        caught = _caught_by(broken)
        print(
            f"{number:2} of {len(chosen)}  {broken.name}: {caught or 'SURVIVED'}  ({time.monotonic() - began:.0f} s)",
            flush=True,
        )
        if caught is None:
            survived.append(broken.name)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants were caught")
    return 1 if survived else 0


def _caught_by(broken: Break) -> str | None:
    with tempfile.TemporaryDirectory(prefix="plugpull-mutant-") as folder:
        root = Path(folder)
        _copy(root, broken)
        environment = {
            **os.environ,
            "PYTHONPATH": folder,
            "PLUGPULL_ROOT": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        tests = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *_TESTS]
        done = _run(tests, root, environment)
        if done is None:
            return "the tests, which met the limit"
        found = _FAILED.search(done.stdout)
        if done.returncode == 1 and found:
            return found[1]
        if done.returncode != 0:
            raise SystemExit(
                f"{broken.name}: the tests could not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        gate = _run([sys.executable, "-c", _GATE, folder], root, environment)
        if gate is None:
            return "the controls, which met the limit"
        if gate.returncode != 0:
            said = (gate.stdout.strip() or gate.stderr.strip()).splitlines()
            return f"control {said[0] if said else 'gate'}"
    return None


def _copy(root: Path, broken: Break) -> None:
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, root)
    build = root / "build"
    build.mkdir()
    if (ROOT / "build" / "environments").exists():
        (build / "environments").symlink_to(ROOT / "build" / "environments")
    file = root / broken.file
    text = file.read_text(encoding="utf-8")
    if text.count(broken.old) != 1:
        raise SystemExit(
            f"{broken.name}: its line stands {text.count(broken.old)} times in {broken.file}; mend breaks.py"
        )
    file.write_text(text.replace(broken.old, broken.new), encoding="utf-8")


def _run(
    command: list[str], root: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None


if __name__ == "__main__":
    sys.exit(main())
