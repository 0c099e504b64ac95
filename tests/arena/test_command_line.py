"""The command line: what a user can mend ends in one clear message and status 2, never in a traceback."""

import json
import os
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from arena.adapters import find_adapters
from arena.results import ResultsFile
from arena.scenario import find_scenarios
from tests.checkout import Checkout

QUICK = ("run", "controls", "--scenario", "kill-mid-tool", "--mode", "outbox", "--at", "after-effect@rest")


def refused(done: subprocess.CompletedProcess[str], *named: str) -> str:
    """Assert that a command ended with 2 and a message that names things, without a traceback."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    for name in named:
        assert name in done.stderr
    return done.stderr


def mount_small(folder: Path, size: str) -> None:
    """Mount a small file system; only root can."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", "langgrpah"), ("langgrpah", "langgraph")),
        (("run", "langgraph@9.9.9"), ("9.9.9", "1.2.24")),
        (("run", "controls", "--mode", "outbix"), ("outbix", "outbox")),
        (("run", "controls", "--scenario", "kill-mid-tol"), ("kill-mid-tol", "kill-mid-tool")),
        (("run", "controls", "--at", "effect:charge#1.after"), ("effect:charge#1.after",)),
        (("run", "controls", "--trials", "0"), ("trials",)),
        (("run", "controls", "--trials", "many"), ("--trials", "integer")),
        (("run", "controls", "--wished"), ("--wished",)),
        (("wished",), ("wished",)),
        (("run", "--continue"), ("unfinished",)),
        (("publish",), ("complete run",)),
        (("publish", "20200101-000000-1"), ("20200101-000000-1",)),
        (("verify", "gone.json"), ("gone.json",)),
    ],
)
def test_what_does_not_exist_is_named(
    cli: Checkout, arguments: tuple[str, ...], named: tuple[str, ...]
) -> None:
    refused(cli.run(*arguments), *named)
    assert not list(cli.root.glob("build/runs/*"))


def test_a_leg_limit_above_the_ceiling_is_refused_at_once(cli: Checkout) -> None:
    refused(cli.run(*QUICK, "--leg-limit", "90", "--ceiling", "60"), "--leg-limit 90", "--ceiling 60")
    assert not (cli.root / "build").exists()


def test_a_modes_own_limit_above_the_ceiling_is_refused_at_once(cli: Checkout) -> None:
    done = cli.run("run", "controls", "--mode", "hang", "--leg-limit", "1", "--ceiling", "2")
    refused(done, "controls/adapter.toml", "modes.hang.leg_limit_s", "--ceiling 2")
    assert not (cli.root / "build").exists()


def test_a_broken_adapter_is_named_with_file_and_field(cli: Checkout) -> None:
    cli.adapter("controls", lambda text: text.replace('language = "python"', 'language = "cobol"'))
    refused(cli.run(*QUICK), "adapters/controls/adapter.toml", "language")


def test_an_adapter_that_is_no_toml_is_named(cli: Checkout) -> None:
    cli.adapter("controls", lambda text: text + "\n[broken")
    refused(cli.run(*QUICK), "adapters/controls/adapter.toml", "TOML")


def test_a_results_file_of_another_schema_is_named(cli: Checkout) -> None:
    path = cli.root / "other.json"
    path.write_text('{"schema": 7, "results": []}', encoding="utf-8")
    refused(cli.run("verify", str(path)), "other.json", "schema 1", "7")


def test_a_full_disk_is_named_with_the_journal(cli: Checkout) -> None:
    runs = cli.root / "build" / "runs"
    runs.mkdir(parents=True)
    mount_small(runs, "4k")
    try:
        (runs / "fills").write_bytes(b"x" * 4096)
        message = refused(cli.run(*QUICK), "build/runs", "No space left on device")
        assert len(message.strip().splitlines()) <= 8
    finally:
        subprocess.run(["umount", str(runs)], check=True)


def test_a_disk_that_fills_during_the_run_says_how_to_go_on(cli: Checkout) -> None:
    runs = cli.root / "build" / "runs"
    runs.mkdir(parents=True)
    mount_small(runs, "16k")
    try:
        (runs / "fills").write_bytes(b"x" * 8192)
        refused(cli.run(*QUICK, "--trials", "200"), "build/runs", "No space left on device", "--continue")
        (runs / "fills").unlink()
    finally:
        subprocess.run(["umount", str(runs)], check=True)
    assert not cli.started()


def test_no_network_at_environment_building_is_named_with_the_lock(cli: Checkout) -> None:
    offline = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(cli.root / "empty-cache")}
    done = cli.run("run", "vanilla", "--scenario", "kill-mid-tool", "--trials", "1", **offline)
    refused(done, "vanilla", "network", "locks/")


def test_a_framework_that_cannot_be_had_does_not_keep_others_from_running(cli: Checkout) -> None:
    offline = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(cli.root / "empty-cache")}
    wanted = ("run", "controls", "vanilla", "--scenario", "kill-mid-tool", "--at", "after-effect@rest")
    done = cli.run(*wanted, "--mode", "outbox", "--mode", "transcript", "--trials", "1", "--json", **offline)
    refused(done, "vanilla", "network")
    verdicts = {(r["target"], r["verdict"]) for r in json.loads(done.stdout)["results"]}
    assert ("controls", "PASS") in verdicts
    assert ("vanilla", "ERROR") in verdicts


def test_json_is_a_results_file_of_schema_1(cli: Checkout) -> None:
    done = cli.run(*QUICK, "--trials", "2", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["schema"] == 1
    file = ResultsFile.model_validate(data)
    assert [(r.key, r.verdict) for r in file.results] == [("none", "FAIL"), ("call-id", "PASS")]
    evidence = file.results[0].evidence
    assert evidence["resume_returncode"] == 0
    kill = evidence["kill"]
    assert kill["pid"] == kill["group"] == kill["holders"][0][0]
    assert kill["status"] == "killed 9"
    assert 0 <= kill["closed_after_s"] <= 1
    assert str(cli.root) not in done.stdout
    assert str(cli.scratch) not in done.stdout


def test_a_junit_report_is_xml_with_a_case_a_cell(cli: Checkout) -> None:
    report = cli.root / "report.xml"
    done = cli.run(*QUICK, "--trials", "1", "--junit", str(report))
    assert done.returncode == 0, done.stderr
    suite = ET.parse(report).getroot()
    assert suite.tag == "testsuite"
    assert [len(case.findall("failure")) for case in suite.findall("testcase")] == [1, 0]
    assert suite.get("tests") == "2"


def test_strict_ends_with_1_where_a_cell_fails(cli: Checkout) -> None:
    assert cli.run(*QUICK, "--trials", "1", "--strict").returncode == 1
    assert cli.run(*QUICK, "--trials", "1").returncode == 0


def test_an_error_ends_with_2(cli: Checkout) -> None:
    wanted = ("run", "controls", "--scenario", "kill-mid-tool", "--mode", "mute", "--at", "after-effect@rest")
    done = cli.run(*wanted, "--trials", "1", "--json", "--strict")
    assert done.returncode == 2
    assert {r["verdict"] for r in json.loads(done.stdout)["results"]} == {"ERROR"}


def test_a_failing_cell_prints_its_timeline_and_the_command_that_reproduces_it(cli: Checkout) -> None:
    done = cli.run(*QUICK, "--trials", "1")
    assert "THE PROVIDER RECORDS charge_card" in done.stdout
    assert "reproduce: plugpull run controls@" in done.stdout


def test_a_cold_run_starts_every_leg_cold(cli: Checkout) -> None:
    done = cli.run(*QUICK, "--trials", "1", "--cold", "--json")
    legs = [leg for r in json.loads(done.stdout)["results"] for leg in r["legs"]]
    assert {leg["start"] for leg in legs} == {"cold"}


def test_a_warm_run_starts_every_leg_warm(cli: Checkout) -> None:
    done = cli.run(*QUICK, "--trials", "1", "--json")
    legs = [leg for r in json.loads(done.stdout)["results"] for leg in r["legs"]]
    assert {leg["start"] for leg in legs} == {"warm"}


def test_the_ceiling_ends_a_run_that_can_be_gone_on_with(cli: Checkout) -> None:
    wanted = ("run", "controls", "--scenario", "kill-mid-tool", "--mode", "hang", "--at", "after-effect@rest")
    refused(cli.run(*wanted, "--trials", "40", "--ceiling", "6", "--leg-limit", "5"), "ceiling", "--continue")
    assert not cli.started()


def test_what_a_run_wrote_can_be_verified(cli: Checkout) -> None:
    done = cli.run(*QUICK, "--trials", "2", "--json")
    path = cli.root / "run.json"
    path.write_text(done.stdout, encoding="utf-8")
    good = cli.run("verify", str(path))
    assert (good.returncode, good.stderr) == (0, "")
    path.write_text(done.stdout.replace('"verdict":"FAIL"', '"verdict":"PASS"', 1), encoding="utf-8")
    bad = cli.run("verify", str(path))
    assert bad.returncode == 1
    assert "verdict: stated 'PASS'" in bad.stderr


def test_the_listing_names_every_adapter_mode_and_scenario(cli: Checkout) -> None:
    done = cli.run("list")
    assert done.returncode == 0
    for name, adapter in find_adapters(cli.root / "adapters").items():
        assert name in done.stdout
        assert all(mode in done.stdout for mode in adapter.modes)
    assert all(name in done.stdout for name in find_scenarios())


def test_a_run_leaves_nothing_in_the_temporary_folder(cli: Checkout) -> None:
    cli.run(*QUICK, "--trials", "1")
    assert not list(Path(cli.scratch).iterdir())
    assert not cli.processes()
