"""Modes that need an engine server: one for a run, told to each trial, and an ERROR where it does not start."""

import json
from collections.abc import Callable

import pytest

from tests.checkout import Checkout

HEALTHY = """
import json, sys
print(json.dumps({"address": "toy:1"}), flush=True)
sys.stdin.read()
"""
BROKEN = "import sys; sys.exit('no room')\n"
ONE_CELL = (
    "run",
    "controls",
    "--scenario",
    "kill-mid-tool",
    "--at",
    "after-effect@rest",
    "--trials",
    "1",
    "--json",
)


def with_engine(text: str) -> str:
    engine = '[engines.toy]\nsummary = "A toy"\nprogram = "toy_server.py"\npackage = "pydantic"\ntimeouts = "none"\n\n'
    return text.replace("[modes.outbox]\n", f'{engine}[modes.outbox]\nengine = "toy"\n', 1)


@pytest.fixture
def engine(cli: Checkout) -> Callable[[str], None]:
    def make(source: str) -> None:
        folder = cli.adapter("controls", with_engine).parent
        (folder / "toy_server.py").write_text(source, encoding="utf-8")

    return make


def test_a_run_starts_the_engine_says_its_version_and_leaves_nothing(
    cli: Checkout, engine: Callable[[str], None]
) -> None:
    engine(HEALTHY)
    done = cli.run(*ONE_CELL, "--mode", "outbox")
    file = json.loads(done.stdout)
    (said,) = file["run"]["engines"]
    assert {said[key] for key in ("name", "adapter", "package")} == {"toy", "controls", "pydantic"}
    assert said["version"][0].isdigit()
    assert {result["verdict"] for result in file["results"]} <= {"PASS", "FAIL"}
    assert all(result.get("state_bytes") is None for result in file["results"])
    assert not cli.processes()


def test_an_engine_that_does_not_start_is_an_error_in_its_modes_only(
    cli: Checkout, engine: Callable[[str], None]
) -> None:
    engine(BROKEN)
    done = cli.run(*ONE_CELL, "--mode", "outbox", "--mode", "ledger-first")
    assert done.returncode == 2
    verdicts: dict[str, set[str]] = {}
    for result in json.loads(done.stdout)["results"]:
        verdicts.setdefault(result["mode"], set()).add(result["verdict"])
        if result["mode"] == "outbox":
            assert "engine toy of controls: ended with status 1; it said:\nno room" in result["detail"]
    assert verdicts["outbox"] == {"ERROR"}
    assert "ERROR" not in verdicts["ledger-first"]


def test_an_engine_that_no_table_describes_is_named(cli: Checkout) -> None:
    cli.adapter(
        "controls", lambda text: text.replace("[modes.outbox]\n", '[modes.outbox]\nengine = "toy"\n', 1)
    )
    done = cli.run(*ONE_CELL)
    assert done.returncode == 2
    assert "modes.outbox.engine: there is no [engines.toy]" in done.stderr
    assert "Traceback" not in done.stderr
