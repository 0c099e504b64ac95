"""What durability costs: the same run with it and without it, and nothing where a run did not finish."""

from datetime import date
from pathlib import Path

from arena.adapters import Engine, Mode, Unsupported, load_adapter
from arena.cells import Wanted, select
from arena.overhead import RUNS, measure_overheads
from arena.scenario import find_scenarios
from arena.targets import prepare

ROOT = Path(__file__).resolve().parents[2]
CONTROLS = load_adapter(ROOT / "adapters" / "controls")
VERSION = CONTROLS.versions[0].version


def with_baseline(mode: Mode) -> Mode:
    return mode.model_copy(update={"baseline": "the same without its file"})


def test_a_mode_is_measured_with_and_without_and_one_that_does_not_finish_is_left_out(tmp_path: Path) -> None:
    modes = {name: with_baseline(CONTROLS.modes[name]) for name in ("outbox", "mute")}
    modes["ledger-first"] = CONTROLS.modes["ledger-first"]
    adapter = CONTROLS.model_copy(update={"modes": modes})
    shots = select(Wanted(("controls",), ("kill-mid-tool",)), {"controls": adapter}, find_scenarios())
    targets = {("controls", VERSION): prepare(adapter, VERSION, tmp_path)}
    (measured,) = measure_overheads(shots, targets, tmp_path, 300.0)["controls", VERSION]
    assert (measured.mode, measured.baseline, measured.runs) == ("outbox", "the same without its file", RUNS)
    assert all(seconds > 0 for seconds in (*measured.seconds, *measured.cpu_s))


def test_a_mode_gets_its_engine_though_one_of_its_scenarios_is_not_supported(tmp_path: Path) -> None:
    program = tmp_path / "toy_server.py"
    program.write_text(
        'import sys\nprint(\'{"address": "toy:1"}\', flush=True)\nsys.stdin.read()\n', encoding="utf-8"
    )
    toy = Engine(summary="A toy", program=str(program), package="pydantic", timeouts="none")
    mode = with_baseline(CONTROLS.modes["outbox"]).model_copy(update={"engine": "toy"})
    lack = Unsupported(
        capability="session-store", reason="none", url="https://example.org", checked=date(2026, 12, 1)
    )
    adapter = CONTROLS.model_copy(
        update={"modes": {"outbox": mode}, "engines": {"toy": toy}, "unsupported": (lack,)}
    )
    shots = select(Wanted(("controls",)), {"controls": adapter}, find_scenarios())
    assert any(shot.lacking for shot in shots)
    last = sorted(shots, key=lambda shot: bool(shot.lacking))
    targets = {("controls", VERSION): prepare(adapter, VERSION, tmp_path)}
    (measured,) = measure_overheads(last, targets, tmp_path, 300.0)["controls", VERSION]
    assert measured.mode == "outbox"
