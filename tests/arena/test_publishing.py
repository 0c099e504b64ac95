"""Publishing: controls gate it, results are append-only, and what is written can be verified."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from arena import publishing
from arena.adapters import Adapter, find_adapters
from arena.cells import Wanted
from arena.publishing import check_controls, publish_command
from arena.results import read_results
from arena.scenario import find_scenarios
from arena.session import RunOptions
from arena.verify import verify_file
from tests.checkout import Checkout, checkout

ROOT = Path(__file__).resolve().parents[2]
ONE_CELL = ("--scenario", "kill-mid-tool", "--mode", "outbox", "--at", "after-effect@rest")


@pytest.fixture(autouse=True)
def _few_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the controls' gate run two scenarios, a trial a cell: all of it takes minutes, and runs at publishing."""
    few = {name: s for name, s in find_scenarios().items() if name in ("kill-mid-tool", "durable-state")}
    monkeypatch.setattr(publishing, "find_scenarios", lambda: few)
    monkeypatch.setattr(publishing, "CONTROL_TRIALS", 1)


def options(trials: int = 1) -> RunOptions:
    return RunOptions(Wanted(), trials, False, 3, 60.0, 3600.0)


@pytest.fixture(scope="module")
def quiet() -> Iterator[Console]:
    with Path("/dev/null").open("w", encoding="utf-8") as null:
        yield Console(file=null)


def controls() -> dict[str, Adapter]:
    return {name: a for name, a in find_adapters(ROOT / "adapters").items() if a.control}


def test_every_control_is_as_known(tmp_path: Path, quiet: Console) -> None:
    wrong, checked = check_controls(ROOT, tmp_path / "build", controls(), options(), quiet)
    assert wrong == []
    assert checked["cells"] == checked["as_known"] > 0


def only(adapter: Adapter, mode: str) -> Adapter:
    """Return a control with one mode."""
    return adapter.model_copy(update={"modes": {mode: adapter.modes[mode]}})


def test_a_control_that_is_not_as_known_is_named(tmp_path: Path, quiet: Console) -> None:
    (adapter,) = controls().values()
    lie = adapter.known[0].model_copy(
        update={"modes": ("outbox",), "scenarios": ("kill-mid-tool",), "points": ("*",), "verdict": "FAIL",
                "anomalies": ("lost",), "keys": ("none", "with")}
    )  # fmt: skip
    wrong_about = only(adapter, "outbox").model_copy(update={"known": (lie, *adapter.known)})
    wrong, checked = check_controls(ROOT, tmp_path / "build", {"controls": wrong_about}, options(), quiet)
    assert len([text for text in wrong if "outbox kill-mid-tool" in text]) == len(wrong) > 0
    assert all("known FAIL ['lost']" in text for text in wrong)
    assert checked["cells"] - checked["as_known"] == len(wrong)


def test_a_cell_without_a_known_verdict_is_not_as_known(tmp_path: Path, quiet: Console) -> None:
    (adapter,) = controls().values()
    silent = tuple(k for k in adapter.known if k.scenarios != ("durable-state",) and k.scenarios != ("*",))
    silent = tuple(k.model_copy(update={"scenarios": ("kill-mid-tool",)}) for k in silent)
    unknown = only(adapter, "outbox").model_copy(update={"known": silent})
    wrong, _ = check_controls(ROOT, tmp_path / "build", {"controls": unknown}, options(), quiet)
    assert any("durable-state" in text and "lists no [[known]] verdict" in text for text in wrong)


@pytest.fixture
def published(tmp_path: Path) -> Iterator[Checkout]:
    """A checkout whose controls have one quick mode, with a complete run of it."""
    root = tmp_path / "checkout"
    root.mkdir()
    with checkout(root) as made:
        made.adapter("controls", keep_one_mode)
        yield made


def keep_one_mode(text: str) -> str:
    """Leave the mode `outbox` only, so that its checks take seconds."""
    blocks = re.split(r"(?m)^(?=\[)", text)
    kept = [b for b in blocks if not b.startswith("[modes.") or b.startswith("[modes.outbox]")]
    return "".join(kept)


def run_and_publish(made: Checkout, audited: int) -> int:
    """Run one cell to its end and publish the run, in this process."""
    done = made.run("run", "controls", *ONE_CELL, "--trials", "2")
    assert done.returncode == 0, done.stderr
    return publish_command(made.root, made.root / "build", None, audited)


def test_a_run_is_published_and_never_written_over(published: Checkout) -> None:
    folder = published.root / "results" / "controls"
    assert run_and_publish(published, 1) == 0
    (first,) = folder.glob("*/*.json")
    text = first.read_bytes()
    assert publish_command(published.root, published.root / "build", None, 0) == 0
    assert len(list(folder.glob("*/*.json"))) == 2
    assert first.read_bytes() == text
    file = read_results(first)
    assert verify_file(file, find_scenarios()) == []
    assert file.run.controls is not None
    assert file.run.audit is not None
    assert file.run.audit["cells"] == file.run.audit["agreed"] > 0


def test_one_wrong_control_and_nothing_is_published(
    published: Checkout, capfd: pytest.CaptureFixture[str]
) -> None:
    file = published.root / "adapters" / "controls" / "adapter.toml"
    good = file.read_text(encoding="utf-8")
    lie = '[[known]]\nmodes = ["outbox"]\nscenarios = ["kill-mid-tool"]\nverdict = "FAIL"\nanomalies = ["lost"]\n\n'
    at = good.index("[[known]]")
    file.write_text(good[:at] + lie + good[at:], encoding="utf-8")
    assert run_and_publish(published, 0) == 2
    said = capfd.readouterr().err
    assert "control not as known" in said
    assert "nothing is published" in said
    assert not list(published.root.glob("results/**/*.json"))
