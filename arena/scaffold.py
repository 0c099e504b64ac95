"""`plugpull new`: a new adapter's folder. Every gap that it leaves is marked, and `plugpull check` names each."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from string import Template

from arena.adapters import NAME, AdapterError
from arena.contract import compile_command

_TARGET = Template('''\
"""An agent that charges a card, written as the docs of $package write one.

Run as `python target.py start|resume`; plugpull ends it at the worst moment and resumes it elsewhere.
"""

import importlib.metadata
import os
import sys

import plugpull

# TODO: import the framework, and hand it the four tools below in the way its docs show


def lookup(fact: str) -> str:
    """Look up a fact by its name."""
    return str(plugpull.call("lookup", fact=fact))


def calculator(expression: str) -> str:
    """Evaluate an arithmetic expression."""
    return str(plugpull.call("calculator", expression=expression))


def charge_card(order: str, amount: int) -> str:
    """Charge the card of an order."""
    return str(plugpull.effect("charge_card", order=order, amount=amount))


def send_receipt(order: str) -> str:
    """Send the receipt of an order."""
    return str(plugpull.effect("send_receipt", order=order))


def start(prompt: str) -> str | None:
    """Run the agent and return its answer, or None if the run is saved and waits for a person."""
    raise NotImplementedError("TODO: run the agent on the prompt; its state goes below $$PLUGPULL_WORKDIR")


def resume() -> str | None:
    """Resume the run that is saved, with the decision in $$PLUGPULL_DECISION if a person has made one."""
    raise NotImplementedError("TODO: resume the run by the call that the docs give for it: the recipe")


def main() -> None:
    """Start the run or resume it."""
    plugpull.hello(framework=$quoted, version=importlib.metadata.version($quoted))
    answer = start(os.environ["PLUGPULL_PROMPT"]) if sys.argv[1] == "start" else resume()
    if answer is None:
        plugpull.paused()
    else:
        plugpull.answer(answer)


if __name__ == "__main__":
    main()
''')

_ADAPTER = Template("""\
# What begins with TODO is to be filled in; `plugpull check $name` names what is left.

name = "TODO: the framework's name, as its docs spell it"
package = $package
licence = "TODO: the SPDX name of its licence, e.g. MIT"
language = "python"
target = "target.py"
home = "TODO: https://… of its source"
docs = $docs
summary = "TODO: one sentence: what it is, and where it keeps the state of a run"

# The newest version first. More versions: another of these tables, another lock.
[[versions]]
version = $version
lock = $lock
released = $released

# A way to make a run durable that the docs teach. Give it a name, e.g. [modes.sqlite]; $$PLUGPULL_MODE tells the target.
[modes.todo]
summary = "TODO: one sentence: what is saved, and when"
durable = "TODO: where it is saved, e.g. SqliteSaver"
[modes.todo.recipe]
call = "TODO: the call that resumes a run, as target.py makes it"
quote = "TODO: the sentence of the docs that says so, word for word"
url = "TODO: https://… of the page it stands on"
checked = "TODO: the day you read it, e.g. $today"

# What it lacks. Take an entry out when target.py has what it names; else say why it cannot, and link the docs.
# A framework that cannot resume at all has no recipe, and an entry with capability = "resume".
[[unsupported]]
capability = "tool-call-id"
reason = "TODO: why a tool does not learn its call's id; or take this entry out and send the id: plugpull.effect(…, key=…)"
url = "TODO: https://… of the page that shows what a tool is given"
checked = "TODO: the day you read it, e.g. $today"

[[unsupported]]
capability = "approval"
reason = "TODO: why charge_card cannot wait for a person; or take this entry out and call plugpull.paused()"
url = "TODO: https://… of the page about approvals, or of the nearest one"
checked = "TODO: the day you read it, e.g. $today"

[[unsupported]]
capability = "session-store"
reason = "TODO: why a session cannot be kept in plugpull.store; or take this entry out and keep it there"
url = "TODO: https://… of the page about sessions or storage"
checked = "TODO: the day you read it, e.g. $today"

# For each FAIL, look for a sentence of the docs about it, and quote it here; where there is none, the cell says silent.
# [[promises]]
# modes = ["*"]
# scenarios = ["kill-mid-tool"]
# points = ["*"]
# anomalies = ["duplicated"]
# stance = "documents"        # the docs describe it; "contradicts": they promise otherwise
# quote = "word for word"
# url = "https://…"
# checked = $today
""")

_REQUIREMENTS = Template("""\
# uv pip compile --generate-hashes --no-emit-index-url --no-header --python-version 3.11
#   --exclude-newer ${released}T23:59:59Z $lock.in -o $lock.txt
$package==$version
""")


def new_adapter(
    adapters: Path,
    wanted: str,
    *,
    package: str | None = None,
    released: datetime.date | None = None,
    docs: str | None = None,
    today: datetime.date,
) -> tuple[str, ...]:
    """Make the folder of a new adapter and return what to do next, a line each.

    Args:
        adapters: the folder `adapters/`.
        wanted: its name, or `NAME@VERSION`.
        package: the distribution whose versions are tested; by default the name, with dashes.
        released: the day of that version's release.
        docs: the address of the framework's docs.
        today: the day that stands in examples.

    Raises:
        AdapterError: the name is none, the folder is there already, or a value cannot be used.
    """
    name, at, version = wanted.partition("@")
    if not re.fullmatch(NAME, name):
        raise AdapterError(
            f"{name!r} cannot be an adapter's name: it is a folder and a word of the command line, so it begins with "
            "a letter and has small letters, digits and underscores only, e.g. my_framework"
        )
    if at and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*", version):
        raise AdapterError(f"{wanted!r}: {version!r} is no version; write e.g. {name}@1.2.3")
    if docs is not None and not docs.startswith("https://"):
        raise AdapterError(f"--docs {docs}: an address begins with https://")
    folder = adapters / name
    if folder.exists():
        raise AdapterError(
            f"{adapters.name}/{name} is there already; choose another name, or see what it lacks: plugpull check {name}"
        )
    package = package or name.replace("_", "-")
    lock = version or "VERSION"
    day = released.isoformat() if released else "DATE"
    (folder / "locks").mkdir(parents=True)
    values = {
        "name": name,
        "package": json.dumps(package),
        "docs": json.dumps(docs or "TODO: https://… of its docs", ensure_ascii=False),
        "version": json.dumps(version or "TODO: the version you test, e.g. 1.2.3"),
        "lock": json.dumps(
            f"locks/{version}.txt"
            if version
            else "TODO: locks/1.2.3.txt, when you have renamed locks/VERSION.in and compiled it"
        ),
        "released": day
        if released
        else json.dumps(f"TODO: the day of that version's release, without quotes, e.g. {today}"),
        "today": today.isoformat(),
    }
    (folder / "adapter.toml").write_text(_ADAPTER.substitute(values), encoding="utf-8")
    (folder / "target.py").write_text(
        _TARGET.substitute(package=package, quoted=json.dumps(package)), encoding="utf-8"
    )
    (folder / "locks" / f"{lock}.in").write_text(
        _REQUIREMENTS.substitute(released=day, lock=lock, package=package, version=lock), encoding="utf-8"
    )
    shown = f"{adapters.name}/{name}"
    unknown = [] if version else ["VERSION is the version you test: rename the .in"]
    unknown += [] if released else ["DATE is the day of that version's release"]
    return (
        f"{shown}/ is made: target.py, adapter.toml, locks/{lock}.in. What to do next:",
        f"  1. write {shown}/target.py and fill in {shown}/adapter.toml; this names what is missing:",
        f"     plugpull check {name}",
        "  2. compile the lock, with companions as of the version's release:",
        f"     {compile_command(folder, f'locks/{lock}.txt', released)}",
        *(f"     ({what})" for what in unknown),
        "  3. when nothing is missing, kill it:",
        f"     plugpull run {name} --scenario kill-mid-tool --trials 1",
    )
