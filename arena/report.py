"""Results for people and for CI: a table, a witness as a timeline, a JUnit report. Formats only."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from arena.results import Result, ResultsFile
from harness.history import CHECKS

_STYLE = {"PASS": "green", "FAIL": "bold red", "ERROR": "bold yellow", "UNSUPPORTED": "dim"}
#: Failing cells whose timelines are printed; the rest name their command only.
_TIMELINES = 4


def print_results(file: ResultsFile, console: Console) -> None:
    """Print a table of the cells, then each failing cell's witness and the command that reproduces it."""
    if not console.is_terminal:
        console.width = 240
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("target", "mode", "scenario", "point", "key", "verdict", "what", "trials"):
        table.add_column(name, overflow="fold")
    for r in file.results:
        table.add_row(
            f"{r.target}@{r.version}",
            r.mode,
            r.scenario,
            f"{r.kill_point}@{r.point.rpartition('@')[2]}",
            r.key or "-",
            Text(r.verdict, style=_STYLE[r.verdict]),
            what(r),
            trials(r),
        )
    console.print(table)
    shown: dict[str, None] = {}
    failing = [r for r in file.results if r.verdict in ("FAIL", "ERROR")]
    for r in failing:
        witness = next((o.witness for o in r.trials.outcomes if o.verdict == r.verdict), None)
        if witness is None or witness in shown:
            continue
        shown[witness] = None
        console.print(
            f"\n{r.verdict} {r.target}@{r.version} {r.mode} {r.scenario} {r.point}: {r.detail}", markup=False
        )
        if len(shown) <= _TIMELINES:
            for line in timeline(file.witnesses[witness]):
                console.print(f"  {line}", markup=False)
        console.print(f"  reproduce: {r.reproduce}", markup=False)
    counts = {v: sum(r.verdict == v for r in file.results) for v in _STYLE}
    console.print(
        "\n" + ", ".join(f"{n} {v}" for v, n in counts.items() if n) + f" of {len(file.results)} cells"
    )


def what(result: Result) -> str:
    """Return a cell's anomalies with the docs' stance, or its score, in a few words."""
    if result.anomalies:
        return ", ".join(f"{found.name} ({found.stance})" for found in result.anomalies)
    return result.trials.score or ""


def trials(result: Result) -> str:
    """Return a cell's numbers: failed of n with the interval, or n and its upper bound."""
    t = result.trials
    if t.interval is None:
        return ""
    low, high = t.interval
    if t.k:
        return f"{t.k} of {t.n} failed, {low:.0%} to {high:.0%}"
    return f"{t.n}, fails at most {high:.0%}"


def timeline(history: Sequence[Sequence[Any]]) -> list[str]:
    """Return a history as lines of text: seconds, process, what happened; a failed process's last words with it."""
    lines = []
    for at, leg, kind, facts in history:
        lines.append(f"{at:7.3f} s  {who(leg):<9} {say(kind, facts)}")
        if kind == "leg-ended" and facts["how"] == "exited" and facts.get("stderr"):
            lines.append(f"{'':9}  {who(leg):<9} its last words: {facts['stderr'].splitlines()[-1]}")
    return lines


def who(leg: int | None) -> str:
    """Return the name of a leg in timelines."""
    return "harness" if leg is None else f"process {leg + 1}"


def say(kind: str, facts: dict[str, Any]) -> str:
    """Return an event in words."""
    name = f"{facts.get('name', '')}({', '.join(f'{v}' for v in facts.get('arguments', {}).values())})"
    key = f", key {facts['key']}" if "key" in facts else ", no key"
    match kind:
        case "leg-started":
            return f"starts ({facts['word']}, {facts['start']}, pid {facts['pid']})"
        case "model-asked":
            again = ", a retry" if facts["retry"] else ""
            return (
                f"asks the model, turn {facts['turn']}{again}, {facts['results']} results in the transcript"
            )
        case "model-answered":
            if "answer" in facts:
                return f"the model answers: {facts['answer']}"
            calls = ", ".join(
                f"{c[1]}({', '.join(map(str, c[2].values()))}) as {c[0]}" for c in facts["calls"]
            )
            return f"the model asks for {calls}"
        case "model-refused":
            return f"the model's API refuses the transcript with 400: {facts['text']}"
        case "arrived":
            return f"calls {name}{key if facts['what'] == 'effect' else ''}"
        case "recorded":
            return f"THE PROVIDER RECORDS {name}{key}"
        case "answered":
            return f"is answered: {name}"
        case "held":
            return f"is held at {facts['point']}"
        case "checked":
            return (
                f"check {'holds' if facts['ok'] else 'FAILS'}: {CHECKS.get(facts['check'], facts['check'])}"
            )
        case "struck":
            rest = (
                ""
                if "rested" not in facts
                else " at rest"
                if facts["rested"]
                else " without having come to rest"
            )
            return f"is struck{rest}: {facts['action']}, signal {facts.get('signal', 'none')}, group {facts['group']}"
        case "leg-ended":
            saved = f", {facts['state_bytes']} bytes saved" if "state_bytes" in facts else ""
            return f"ends: {facts['how']} {facts['status']}{saved}"
        case "limit":
            return f"meets the limit of its {facts['which']} after {facts['seconds']} s"
        case "answer":
            return f"hands in its answer: {facts['text']}"
        case "hello":
            return "says it is " + ", ".join(
                f"{k[5:]} {v}" for k, v in facts.items() if k.startswith("said_")
            )
        case "paused":
            return "says that its run waits for a person"
        case "left-behind":
            return f"left process {facts['pid']} behind; ended by {facts['ended']}"
        case "barrier":
            return f"leaves the barrier: {facts['reason']}"
        case "stored":
            return f"THE STORE KEEPS {facts['operation']} {', '.join(facts['items'])}"
        case "store":
            return (
                f"{facts['session']} holds {', '.join(f'{n} x {text}' for text, n in facts['items'].items())}"
            )
        case "mode-read":
            return f"{facts['pragma']} is {facts['found']}, asked for {facts['asked']}"
        case "error":
            return f"ERROR: {facts['reason']}"
        case "closed":
            return "every process is dead, every socket drained"
        case _:
            return kind


def differences(before: ResultsFile, after: ResultsFile) -> list[str]:
    """Return the cells whose verdict or anomalies changed, and those that only one file has, a line each.

    Cells are matched by mode, scenario, point and use of the key, so files of two versions can be compared.
    """
    there, here = _by_place(before), _by_place(after)
    lines = []
    for place in dict.fromkeys((*there, *here)):
        said = [_said(cells.get(place)) for cells in (there, here)]
        if said[0] != said[1]:
            lines.append(f"{' '.join(place)}: {said[0]} -> {said[1]}")
    return lines


def _by_place(file: ResultsFile) -> dict[tuple[str, ...], Result]:
    return {
        (r.mode, r.scenario, r.point, "with" if r.key in ("call-id", "other") else r.key or "-"): r
        for r in file.results
    }


def _said(result: Result | None) -> str:
    if result is None:
        return "not there"
    return " ".join((result.verdict, *(found.name for found in result.anomalies)))


def junit_report(file: ResultsFile) -> str:
    """Return the results as a JUnit XML report, a test case a cell."""
    suite = ET.Element("testsuite", name="plugpull", tests=str(len(file.results)))
    for r in file.results:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"{r.target}@{r.version}.{r.mode}.{r.scenario}",
            name=f"{r.point} key={r.key or '-'}",
        )
        if r.verdict == "FAIL":
            ET.SubElement(case, "failure", message=r.detail).text = r.reproduce
        elif r.verdict == "ERROR":
            ET.SubElement(case, "error", message=r.detail).text = r.reproduce
        elif r.verdict == "UNSUPPORTED":
            ET.SubElement(case, "skipped", message=r.detail)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
