"""A new framework's folder: made with gaps, each of them named, filled in, run, and in the matrix."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from arena.adapters import AdapterError, AdapterUnfinished, load_adapter
from arena.contract import check_folder
from arena.results import ResultsFile
from arena.scaffold import new_adapter
from arena.scenario import find_scenarios
from tests.checkout import ROOT, Checkout

SCENARIOS = find_scenarios()
#: What a contributor writes for each gap of adapter.toml.
ANSWERS = {
    "name": '"Toy"',
    "licence": '"MIT"',
    "home": '"https://example.org/toy"',
    "docs": '"https://example.org/toy/docs"',
    "summary": '"A loop whose messages are pickled after every step."',
    "version": '"1.0"',
    "lock": '"locks/1.0.txt"',
    "released": "2026-11-20",
    "durable": '"a pickle, replaced after every message"',
    "call": '"run(load())"',
    "quote": '"Load the messages and run."',
    "url": '"https://example.org/toy/docs#resume"',
    "checked": "2026-12-01",
    "reason": '"It has none."',
}
LOCK = "toy==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n"
#: A framework of thirty lines: what a contributor writes into the gaps of target.py.
FRAMEWORK = """
import json
import pickle
import urllib.request
from pathlib import Path

FILE = Path(os.environ["PLUGPULL_WORKDIR"], "messages.pickle")


def save(messages: list) -> None:
    new = FILE.with_suffix(".new")
    new.write_bytes(pickle.dumps(messages))
    new.replace(FILE)


def load() -> list:
    return pickle.loads(FILE.read_bytes())


def run(messages: list) -> str:
    while True:
        answered = {message.get("tool_call_id") for message in messages}
        for call in messages[-1].get("tool_calls", ()) if len(messages) > 1 else ():
            if call["id"] not in answered:
                tool, arguments = TOOLS[call["function"]["name"]], json.loads(call["function"]["arguments"])
                content = tool(**arguments, **{"id": call["id"]} if tool in (charge_card, send_receipt) else {})
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
                save(messages)
        request = urllib.request.Request(
            os.environ["OPENAI_BASE_URL"] + "/chat/completions",
            json.dumps({"model": "scripted", "messages": messages}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            message = json.load(reply)["choices"][0]["message"]
        messages.append(message)
        save(messages)
        if not message.get("tool_calls"):
            return message["content"]
"""


@pytest.fixture
def own(cli: Checkout) -> Checkout:
    """A checkout that has no adapter yet."""
    (cli.root / "adapters").unlink()
    (cli.root / "adapters").mkdir()
    return cli


@pytest.fixture
def made(own: Checkout) -> Path:
    """The folder that `plugpull new toy@1.0` makes."""
    new_adapter(own.root / "adapters", "toy@1.0", today=datetime.date(2026, 12, 1))
    return own.root / "adapters" / "toy"


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Change a file; each text that is replaced must stand in it."""
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def fill_toml(folder: Path, leave: int = -1) -> str:
    """Fill in every gap of adapter.toml, but for one by its number, and return the line of that one."""
    file = folder / "adapter.toml"
    left, lines, gap = "", [], -1
    for line in file.read_text(encoding="utf-8").splitlines():
        field, equals, value = line.partition(" = ")
        marked = equals and value.startswith('"TODO') and not line.startswith("#")
        gap += bool(marked)
        if marked and gap == leave:
            left = field
        lines.append(f"{field} = {ANSWERS[field]}" if marked and gap != leave else line)
    text = "\n".join(lines).replace("[modes.todo", "[modes.pickle")
    file.write_text(text + "\n", encoding="utf-8")
    return left


def fill_target(folder: Path) -> None:
    """Write what is missing in target.py."""
    with_id = "amount: int, id: str) -> str:", "amount: int) -> str:"
    edit(
        folder / "target.py",
        (
            "# TODO: import the framework, and hand it the four tools below in the way its docs show",
            FRAMEWORK,
        ),
        with_id[::-1],
        ("def send_receipt(order: str)", "def send_receipt(order: str, id: str)"),
        ('effect("charge_card", ', 'effect("charge_card", key=id, '),
        ('effect("send_receipt", ', 'effect("send_receipt", key=id, '),
        (
            "def start(",
            "TOOLS = {t.__name__: t for t in (lookup, calculator, charge_card, send_receipt)}\n\n\ndef start(",
        ),
    )
    text = (folder / "target.py").read_text(encoding="utf-8")
    gaps = re.findall(r" *raise NotImplementedError\(.*?\)\n", text)
    assert len(gaps) == 2
    text = text.replace(
        gaps[0], '    return run([*(load() if FILE.exists() else []), {"role": "user", "content": prompt}])\n'
    )
    (folder / "target.py").write_text(text.replace(gaps[1], "    return run(load())\n"), encoding="utf-8")


def fill_in(folder: Path) -> None:
    """Do all that `plugpull check` asks for, as a contributor would."""
    fill_toml(folder)
    fill_target(folder)
    entry = re.search(
        r'\[\[unsupported\]\]\ncapability = "tool-call-id"\n.*?\n\n',
        (folder / "adapter.toml").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert entry is not None
    edit(folder / "adapter.toml", (entry[0], ""))
    (folder / "locks" / "1.0.txt").write_text(LOCK, encoding="utf-8")


# --- plugpull new ---


def test_a_new_folder_has_a_target_an_adapter_toml_and_a_locks_requirements(own: Checkout) -> None:
    done = own.run(
        "new", "toy@1.0", "--package", "toy-loop", "--released", "2026-11-20", "--docs", "https://a.example/"
    )
    assert done.returncode == 0, done.stderr
    folder = own.root / "adapters" / "toy"
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files == {"target.py", "adapter.toml", "locks/1.0.in"}
    data = tomllib.loads((folder / "adapter.toml").read_text(encoding="utf-8"))
    assert (data["package"], data["docs"]) == ("toy-loop", "https://a.example/")
    assert data["versions"][0]["released"].isoformat() == "2026-11-20"
    requirements = (folder / "locks" / "1.0.in").read_text(encoding="utf-8")
    assert requirements.endswith("\ntoy-loop==1.0\n")
    assert "--exclude-newer 2026-11-20T" in requirements
    assert "plugpull check toy" in done.stdout
    assert "1.0.in -o 1.0.txt" in done.stdout


def test_a_package_is_called_as_the_adapter_where_nothing_else_is_said(own: Checkout) -> None:
    own.run("new", "toy_loop@1.0")
    data = tomllib.loads((own.root / "adapters" / "toy_loop" / "adapter.toml").read_text(encoding="utf-8"))
    assert data["package"] == "toy-loop"


def test_without_a_version_the_version_is_one_of_the_gaps(own: Checkout) -> None:
    assert own.run("new", "toy").returncode == 0
    said = own.run("check", "toy").stdout
    for field in ("versions.0.version", "versions.0.lock", "versions.0.released"):
        assert f"adapters/toy/adapter.toml: {field}: is to be filled in: " in said


def test_a_folder_that_is_there_is_refused_and_left_alone(own: Checkout, made: Path) -> None:
    (made / "target.py").write_text("mine", encoding="utf-8")
    done = own.run("new", "toy@2.0")
    assert done.returncode == 2
    assert "adapters/toy is there already" in done.stderr
    assert (made / "target.py").read_text(encoding="utf-8") == "mine"
    assert not (made / "locks" / "2.0.in").exists()


@pytest.mark.parametrize("name", ["Toy", "my-toy", "1toy", "../toy", "", "toy@", "toy@1/0", "toy@..", ".toy"])
def test_a_name_or_version_that_cannot_be_used_is_refused_and_nothing_is_made(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "adapters").mkdir()
    with pytest.raises(AdapterError, match=re.escape(repr(name))):
        new_adapter(tmp_path / "adapters", name, today=datetime.date(2026, 12, 1))
    assert not [p for p in tmp_path.rglob("*") if p != tmp_path / "adapters"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("Toy",), "'Toy' cannot be an adapter's name"),
        (("toy", "--docs", "example.org"), "begins with https://"),
        (("toy", "--released", "soon"), "soon"),
        ((), "ADAPTER"),
    ],
)
def test_what_cannot_be_used_ends_with_2_and_a_message(
    own: Checkout, arguments: tuple[str, ...], named: str
) -> None:
    done = own.run("new", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((own.root / "adapters").iterdir())


def test_a_new_target_is_formatted_as_the_repository_is(made: Path) -> None:
    ruff = (sys.executable, "-m", "ruff")
    for command in (("check",), ("format", "--check")):
        done = subprocess.run(
            [*ruff, *command, "--config", str(ROOT / "pyproject.toml"), str(made)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


# --- what is missing is named ---


def test_every_gap_is_named_with_file_field_and_remedy(own: Checkout, made: Path) -> None:
    done = own.run("check", "toy")
    assert done.returncode == 1
    *lines, last = done.stdout.splitlines()
    marks = sum(
        (made / name).read_text(encoding="utf-8").count(mark)
        for name, mark in (("adapter.toml", ' = "TODO'), ("target.py", "TODO: "))
    )
    assert marks > 20
    # one more for the table's name and one for the lock
    assert len(lines) == marks + 2
    assert last == f"toy: {len(lines)} to do"
    for line in lines:
        assert re.fullmatch(r"adapters/toy/[^ :]+(:\d+)?: .+: .+", line), line
    assert "adapters/toy/adapter.toml: licence: is to be filled in: the SPDX name" in done.stdout
    assert "adapters/toy/adapter.toml: modes.todo: is to be filled in: give this table a name" in done.stdout
    assert "adapters/toy/target.py:12: is to be written: import the framework" in done.stdout
    assert "adapters/toy/locks/1.0.txt: is missing: compile it: (cd adapters/toy/locks && " in done.stdout


@pytest.mark.parametrize("command", [("list",), ("list", "toy"), ("run", "toy"), ("site",)])
def test_an_unfilled_folder_is_refused_with_its_gaps(
    own: Checkout, made: Path, command: tuple[str, ...]
) -> None:
    done = own.run(*command)
    assert done.returncode == 2
    assert "adapters/toy/adapter.toml: summary: is to be filled in: one sentence" in done.stderr
    assert "plugpull check toy" in done.stderr
    assert "Traceback" not in done.stderr
    assert made.exists()


def test_a_gap_that_is_left_is_the_only_thing_named(made: Path) -> None:
    text = (made / "adapter.toml").read_text(encoding="utf-8")
    fill_target(made)
    (made / "locks" / "1.0.txt").write_text(LOCK, encoding="utf-8")
    for gap in range(text.count(' = "TODO')):
        (made / "adapter.toml").write_text(text, encoding="utf-8")
        field = fill_toml(made, leave=gap)
        (line,) = check_folder(made, SCENARIOS)
        assert re.match(rf"adapters/toy/adapter\.toml: ([a-z0-9.]+\.)?{field}: is to be filled in: ", line)
    (made / "adapter.toml").write_text(text, encoding="utf-8")
    assert fill_toml(made) == ""
    assert check_folder(made, SCENARIOS) == []


def test_a_gap_in_the_target_keeps_it_from_being_run(made: Path) -> None:
    fill_in(made)
    edit(made / "target.py", ("    return run(load())", '    raise NotImplementedError("TODO: resume")'))
    with pytest.raises(AdapterUnfinished, match=r"adapters/toy/target\.py:\d+: is to be written: resume$"):
        load_adapter(made)


def test_a_folder_that_is_filled_in_is_loaded_and_nothing_is_missing(own: Checkout, made: Path) -> None:
    fill_in(made)
    assert load_adapter(made).modes.keys() == {"pickle"}
    done = own.run("check", "toy")
    assert (done.returncode, done.stdout) == (0, "toy: nothing is missing\n")
    assert own.run("list", "toy").returncode == 0


def test_an_adapter_that_is_not_there_cannot_be_checked_or_listed(own: Checkout, made: Path) -> None:
    fill_in(made)
    for command in ("check", "list"):
        done = own.run(command, "toi")
        assert done.returncode == 2
        assert "no adapter 'toi'; there are toy" in done.stderr


PROMISE = """
[[promises]]
modes = ["pickle"]
scenarios = ["kill-mid-tool"]
points = ["*.after@*"]
anomalies = ["duplicated"]
stance = "documents"
quote = "It may run twice."
url = "https://example.org/toy/docs#twice"
checked = 2026-12-01
"""
TOML, TARGET, TXT = "adapter.toml", "target.py", "locks/1.0.txt"


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        # locks
        (TOML, 'lock = "locks/1.0.txt"\n', "", "adapter.toml: versions.0.lock: is missing"),
        (TOML, 'lock = "locks/1.0.txt"', 'lock = "locks/2.0.txt"', "there is no lock locks/2.0.txt: compile it"),
        (TXT, " \\\n    --hash=sha256:" + "0" * 64, "", "1.0.txt: not pinned by hash: toy==1.0: compile it again: (cd"),
        (TXT, "toy==1.0 ", "toy ", "not pinned by hash: toy"),
        (TXT, "toy==1.0 ", "--index-url https://packages.example/simple\ntoy==1.0 ", "package registry"),
        (TXT, "toy==1.0 ", "toy @ https://packages.example/toy.whl ", "package registry"),
        (TXT, "toy==1.0 ", "toy==1.0.1 ", "1.0.txt: does not pin toy==1.0: correct the .in"),
        # quotes without an address, and other fields
        (TOML, 'url = "https://example.org/toy/docs#twice"\n', "", "promises.0.url: is missing: add it"),
        (TOML, 'url = "https://example.org/toy/docs#resume"\n', "", "modes.pickle.recipe.url: is missing"),
        (TOML, "\nstance =", "\nstands =", "promises.0.stands: is no field of this table"),
        # the recipe
        (TOML, 'call = "run(load())"', 'call = "run(load(thread))"', "modes.pickle.recipe.call: thread not found in target.py"),
        # the target
        (TARGET, "import plugpull\n", "import plugpull\nimport numpy.linalg\n", ": no lock installs `numpy`"),
        (TARGET, "import plugpull\n", "import plugpull\nfrom arena import words\n", ": no lock installs `arena`"),
        (TARGET, "import plugpull\n", "import plugpull\nfrom . import tools\n", ": a target is one file"),
        (TARGET, "def main(", "def main main(", ": is no Python: "),
        (TARGET, "calculator", "computer", "target.py: has no tool `calculator`: add it"),
        (TARGET, "plugpull.call(", "input(", "use plugpull.call"),
        (TARGET, "plugpull.effect(", "print(", "use plugpull.effect"),
        (TARGET, "plugpull.answer(", "print(", "use plugpull.answer"),
        (TARGET, "plugpull.hello(", "print(", "use plugpull.hello"),
        (TARGET, "key=id, ", "", 'or say in adapter.toml why it cannot: [[unsupported]] capability = "tool-call-id"'),
        (TARGET, "def main(", 'TRICK = "kill-mid-tool"\n\n\ndef main(', "names the scenario kill-mid-tool"),
        # what an entry is about
        (TOML, 'modes = ["pickle"]', 'modes = ["pickel"]', "promises.0.modes: 'pickel' names none; there are pickle"),
        (TOML, '["kill-mid-tool"]\npoints', '["kill-mid-tol"]\npoints', "promises.0.scenarios: 'kill-mid-tol' names none"),
        (TOML, 'points = ["*.after@*"]', 'points = ["effect:pay*"]', "promises.0: covers no cell"),
        (TOML, "\nstance =", '\nversions = ">=2"\nstance =', "promises.0: covers no cell"),
        (TOML, 'anomalies = ["duplicated"]', "anomalies = []", "promises.0: covers no cell"),
        (TOML, '["kill-mid-tool"]\npoints', '["approval-twice"]\npoints', "promises.0: covers no cell"),
        (TOML, PROMISE, PROMISE + PROMISE, "promises.1: covers no cell, or an entry above it covers them all"),
        (TOML, 'capability = "approval"', 'capability = "approvals"', "unsupported.0: covers no cell"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_filled_folder_is_named(
    made: Path, file: str, old: str, new: str, named: str
) -> None:
    fill_in(made)
    with (made / TOML).open("a", encoding="utf-8") as toml:
        toml.write(PROMISE)
    assert check_folder(made, SCENARIOS) == []
    edit(made / file, (old, new))
    found = check_folder(made, SCENARIOS)
    assert any(line.startswith(f"adapters/toy/{file}") or file != TXT for line in found), found
    assert named in "\n".join(found)


@pytest.mark.parametrize(
    ("capability", "without"),
    [("approval", "plugpull.paused()"), ("session-store", "")],
)
def test_a_capability_is_used_or_said_to_be_missing(made: Path, capability: str, without: str) -> None:
    fill_in(made)
    text = (made / TOML).read_text(encoding="utf-8")
    entries = re.split(r"(?m)^(?=\[\[unsupported\]\]|# For each FAIL)", text)
    (made / TOML).write_text("".join(e for e in entries if f'"{capability}"' not in e), encoding="utf-8")
    if without:
        assert check_folder(made, SCENARIOS) == []
        edit(made / TARGET, (without, "pass"))
    (line,) = check_folder(made, SCENARIOS)
    assert line.startswith("adapters/toy/target.py: ")
    assert f'[[unsupported]] capability = "{capability}"' in line


# --- from an empty folder to a row of the matrix ---


@pytest.fixture
def without_package() -> Callable[[Path], None]:
    """A framework that is the target's own thirty lines: no package, so no lock and no environment."""

    def change(folder: Path) -> None:
        fill_in(folder)
        edit(folder / TOML, ('package = "toy"\n', ""), ('lock = "locks/1.0.txt"\n', ""))
        edit(folder / TARGET, (', version=importlib.metadata.version("toy")', ""))

    return change


def test_a_filled_in_framework_is_killed_for_real_and_stands_in_the_matrix(
    own: Checkout, made: Path, without_package: Callable[[Path], None]
) -> None:
    without_package(made)
    assert check_folder(made, SCENARIOS) == []
    done = own.run("run", "toy", "--scenario", "kill-mid-tool", "--trials", "1", "--jobs", "2", "--json")
    assert done.returncode == 0, done.stderr
    file = ResultsFile.model_validate(json.loads(done.stdout))
    assert {(r.kill_point, r.key, r.verdict, tuple(a.name for a in r.anomalies)) for r in file.results} == {
        ("before-effect", "none", "PASS", ()),
        ("before-effect", "call-id", "PASS", ()),
        ("after-effect", "none", "FAIL", ("duplicated",)),
        ("after-effect", "call-id", "PASS", ()),
    }
    assert {tuple(r.trials.outcomes[0].exits) for r in file.results} == {("killed 9", "exited 0")}
    (own.root / "toy.json").write_text(done.stdout, encoding="utf-8")
    built = own.run("site", "--with", "toy.json")
    assert built.returncode == 0, built.stderr
    assert "toy.json is on it and is not published" in built.stdout
    site = own.root / "build" / "site"
    home = re.sub(r"<[^>]*>|\s+", " ", (site / "index.html").read_text(encoding="utf-8"))
    assert re.search(r"Toy +1\.0 .{0,200}resume by +run\(load\(\)\).{0,400} pickle .{0,200} twice ", home)
    page = (site / "evidence" / "toy" / "1.0" / "pickle" / "kill-mid-tool" / "index.html").read_text(
        encoding="utf-8"
    )
    assert re.search(r"controls</th>\s*<td>not run<", page)
    assert not list((own.root / "results").iterdir())


def test_what_a_failed_target_said_is_shown(
    own: Checkout, made: Path, without_package: Callable[[Path], None]
) -> None:
    without_package(made)
    edit(made / TARGET, ("    return run(load())", "    return run(lod())"))
    done = own.run("run", "toy", "--scenario", "kill-mid-tool", "--at", "before-effect@rest", "--trials", "1")
    assert "process 2 its last words: NameError: name 'lod' is not defined" in done.stdout


def test_a_file_without_results_cannot_be_shown(own: Checkout) -> None:
    (own.root / "toy.json").write_text("{}", encoding="utf-8")
    for name in ("toy.json", "gone.json"):
        done = own.run("site", "--with", name)
        assert done.returncode == 2
        assert name in done.stderr
        assert "Traceback" not in done.stderr
