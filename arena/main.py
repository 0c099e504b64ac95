"""The command line: `plugpull run`, `list`, `new`, `check`, … It parses, prints and sets exit codes."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from arena.adapters import AdapterError, AdapterUnfinished, adapter_folders, find_adapters
from arena.cells import SelectionError, Wanted
from arena.journal import JournalError
from arena.results import ResultsError
from harness.environments import EnvironmentFailed

ROOT = Path(os.environ.get("PLUGPULL_ROOT") or Path(__file__).resolve().parent.parent)
BUILD = ROOT / "build"

app = typer.Typer(
    name="plugpull",
    help="Kills AI agents mid-run, resumes them in new processes, and counts what the payment provider saw.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

_SITE_EXAMPLES = """Examples:

  plugpull site --serve
  plugpull run langgraph --json > mine.json; plugpull site --with mine.json --serve
"""
T = TypeVar("T")

_RUN_EXAMPLES = """Examples:

  plugpull run langgraph
  plugpull run langgraph@1.2.24 --scenario kill-mid-tool --mode graph-sync --json
  plugpull run langgraph@all vanilla --trials 20
  plugpull run --continue
"""
_NEW_EXAMPLES = """Examples:

  plugpull new smolagents@1.26.0 --released 2026-05-29 --docs https://huggingface.co/docs/smolagents/index
  plugpull new my_loop@3.57.0 --package openai
  plugpull new my_framework
"""
_CHECK_EXAMPLES = """Examples:

  plugpull check langgraph
  plugpull check
"""


def _fail(text: str) -> typer.Exit:
    errors.print(f"plugpull: {text}", markup=False)
    return typer.Exit(2)


@app.command(epilog=_RUN_EXAMPLES)
def run(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="ADAPTER, ADAPTER@VERSION or ADAPTER@all; default: every framework"),
    ] = None,
    scenario: Annotated[list[str] | None, typer.Option("--scenario", "-s", help="only this scenario")] = None,
    mode: Annotated[list[str] | None, typer.Option("--mode", "-m", help="only this mode")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="also modes that wait for an engine's timeouts (see `list`)")
    ] = False,
    at: Annotated[
        list[str] | None, typer.Option("--at", help="only this point, e.g. after-effect@rest")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="trials a cell; 20 for publishing")] = 5,
    cold: Annotated[bool, typer.Option("--cold", help="execute a new interpreter for each leg")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="trials at once; default: cores + 1")] = None,
    leg_limit: Annotated[float, typer.Option(min=0.1, help="seconds that each leg may take")] = 60.0,
    ceiling: Annotated[float, typer.Option(min=1, help="seconds after which the run is cut")] = 7200.0,
    continue_: Annotated[bool, typer.Option("--continue", help="go on with the last unfinished run")] = False,
    json_: Annotated[bool, typer.Option("--json", help="print results as JSON, schema 1")] = False,
    junit: Annotated[Path | None, typer.Option(help="write a JUnit report to this file")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="exit with 1 if any cell FAILs")] = False,
) -> None:
    """Run scenarios against frameworks and judge what the provider saw.

    Exit status: 2 if a cell is an ERROR or something asked for is missing; else 1 with --strict and a FAIL; else 0.
    """
    from arena.session import RunOptions, run_command

    wanted = Wanted(tuple(targets or ()), tuple(scenario or ()), tuple(mode or ()), tuple(at or ()), full)
    options = RunOptions(
        wanted=wanted,
        trials=trials,
        cold=cold,
        jobs=jobs or (os.cpu_count() or 1) + 1,
        leg_limit_s=leg_limit,
        ceiling_s=ceiling,
        continue_=continue_,
        json=json_,
        junit=junit,
        strict=strict,
    )
    raise typer.Exit(run_command(ROOT, BUILD, options))


@app.command("list")
def list_(
    adapter: Annotated[
        list[str] | None, typer.Argument(metavar="ADAPTER", help="only these; default: all")
    ] = None,
) -> None:
    """Show adapters, versions, modes and scenarios, and what is UNSUPPORTED and why."""
    from arena.listing import print_listing
    from arena.scenario import find_scenarios

    print_listing(_named(find_adapters(ROOT / "adapters"), adapter), find_scenarios())


@app.command(epilog=_NEW_EXAMPLES)
def new(
    adapter: Annotated[
        str, typer.Argument(metavar="ADAPTER[@VERSION]", help="the folder's name, and the version to test")
    ],
    package: Annotated[
        str | None, typer.Option(help="the package that is tested; default: the adapter's name")
    ] = None,
    released: Annotated[
        datetime.datetime | None,
        typer.Option(formats=["%Y-%m-%d"], metavar="DAY", help="when that version was released"),
    ] = None,
    docs: Annotated[str | None, typer.Option(metavar="URL", help="where the framework's docs are")] = None,
) -> None:
    """Make a new adapter's folder: a target, an adapter.toml and a lock's requirements, with gaps to be filled in.

    Every gap is marked TODO; `plugpull check ADAPTER` names each with its file, its field and what to do.

    Exit status: 2 if the folder is there already or the name cannot be used.
    """
    from arena.scaffold import new_adapter

    day = released.date() if released else None
    today = datetime.datetime.now(datetime.UTC).date()
    lines = new_adapter(ROOT / "adapters", adapter, package=package, released=day, docs=docs, today=today)
    print("\n".join(lines))


@app.command(epilog=_CHECK_EXAMPLES)
def check(
    adapter: Annotated[
        list[str] | None, typer.Argument(metavar="ADAPTER", help="only these; default: all")
    ] = None,
) -> None:
    """Name everything that is missing or wrong in an adapter's folder, with file, field and remedy. Runs nothing.

    Exit status: 1 if something is missing; 2 if there is no such adapter.
    """
    from arena.contract import check_folder
    from arena.scenario import find_scenarios

    scenarios = find_scenarios()
    missing = 0
    for name, folder in _named(adapter_folders(ROOT / "adapters"), adapter).items():
        found = check_folder(folder, scenarios)
        missing += len(found)
        for line in found:
            print(line)
        print(f"{name}: {f'{len(found)} to do' if found else 'nothing is missing'}")
    raise typer.Exit(1 if missing else 0)


def _named(there: Mapping[str, T], names: Iterable[str] | None) -> dict[str, T]:
    """Return what is named, in the order of the names; everything where nothing is."""
    chosen = tuple(names or there)
    for name in chosen:
        if name not in there:
            raise SelectionError(f"no adapter {name!r}; there are {', '.join(sorted(there))}")
    return {name: there[name] for name in chosen}


@app.command()
def publish(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="a run's id; default: the last complete run")
    ] = None,
    cold: Annotated[int, typer.Option("--audit", min=0, help="cells of each mode that also run cold")] = 2,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="of a run that is not complete: the cells that have all their trials"),
    ] = False,
) -> None:
    """Check the controls, audit warm against cold, and write results/.

    One control that is not as known, or one audited cell that does not agree, and nothing is written.
    """
    from arena.publishing import publish_command

    raise typer.Exit(publish_command(ROOT, BUILD, run_id, cold, partial=partial))


@app.command()
def verify(files: Annotated[list[Path], typer.Argument(help="results files")]) -> None:
    """Derive every verdict of a results file again from its trial rows and witnesses.

    This proves that the file is consistent. It does not prove that whoever wrote it was honest.
    """
    from arena.results import read_results
    from arena.scenario import find_scenarios
    from arena.verify import verify_file

    wrong = 0
    for file in files:
        results = read_results(file)
        differences = verify_file(results, find_scenarios())
        for difference in differences:
            errors.print(f"{file}: {difference}", markup=False)
        wrong += len(differences)
        if not differences:
            print(
                f"{file}: {len(results.results)} cells, every verdict follows from its trials and witnesses"
            )
    raise typer.Exit(1 if wrong else 0)


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="a results file")],
    after: Annotated[Path, typer.Argument(help="another results file")],
) -> None:
    """Show the verdicts that changed between two results files, of any two versions or days."""
    from arena.report import differences
    from arena.results import read_results

    lines = differences(read_results(before), read_results(after))
    print("\n".join(lines) if lines else "no verdict and no anomaly changed")


@app.command(epilog=_SITE_EXAMPLES)
def site(
    serve: Annotated[
        bool, typer.Option("--serve", help="serve the built site on a free loopback port")
    ] = False,
    with_: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", metavar="FILE", help="also show the results in a file that `run --json` printed"
        ),
    ] = None,
) -> None:
    """Write the pages from results/, adapters/ and scenarios, and build them with MkDocs --strict.

    Results that are added with --with are not published: their pages say that no control was run.
    """
    from arena.publish.build import build_site, serve_site
    from arena.publish.preview import preview_root

    folder = build_site(preview_root(ROOT, BUILD, with_) if with_ else ROOT, BUILD)
    print(f"the site is in {folder.relative_to(ROOT)}")
    for file in with_ or ():
        print(f"{file} is on it and is not published")
    if serve:
        serve_site(folder)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a results file."""
    from arena.results import json_schema

    sys.stdout.write(json_schema())


def main() -> None:
    """Run the command line; what a user can mend ends in one clear message and status 2, never a traceback."""
    from harness.guardian import guarded

    sys.exit(guarded(_main))


def _main() -> int:
    try:
        status = app(standalone_mode=False)
    except AdapterUnfinished as error:
        errors.print(f"plugpull: {error}\nplugpull check {error.adapter} names everything.", markup=False)
        return 2
    except (AdapterError, SelectionError, JournalError, ResultsError, EnvironmentFailed) as error:
        errors.print(f"plugpull: {error}", markup=False)
        return 2
    except OSError as error:
        errors.print(f"plugpull: {error.filename or 'the machine'}: {error.strerror or error}", markup=False)
        return 2
    except typer.Exit as leaving:
        return int(leaving.exit_code)
    except typer.Abort:
        return 130
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # click's usage errors
            errors.print(f"plugpull: {error.format_message()}", markup=False)
            return 2
        raise
    return int(status or 0)


if __name__ == "__main__":
    main()
