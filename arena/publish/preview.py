"""A look at results that are not published: a root that holds them beside the published ones. Writes below `build/`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from arena.results import ResultsError, read_results


def preview_root(root: Path, build: Path, files: Sequence[Path]) -> Path:
    """Return a root like another, whose results are the other's and those of some files (`run --json`).

    Nothing is written into the other root's `results/`.

    Raises:
        ResultsError: a file holds no results.
    """
    place = build / "preview"
    shutil.rmtree(place, ignore_errors=True)
    (place / "results").mkdir(parents=True)
    for entry in root.iterdir():
        if entry.name not in ("results", build.name) and not entry.name.startswith("."):
            (place / entry.name).symlink_to(entry.absolute())
    for published in (root / "results").glob("*/*/*.json"):
        _put(place / "results" / published.relative_to(root / "results"), published)
    for number, file in enumerate(files, 1):
        read = read_results(file)
        if not read.results:
            raise ResultsError(f"{file}: holds no result")
        first = read.results[0]
        name = f"{read.run.date}.unpublished-{number}.json"
        _put(place / "results" / first.target / first.version / name, file)
    return place


def _put(place: Path, file: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(file.absolute())
