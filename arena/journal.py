"""The journal of a run: a line for its plan, then a line for each finished trial. Append-only, streamed.

A run that is killed at any instant loses at most the line that was being written; what was written is not run
again. This module judges nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from arena.words import Anomaly, Verdict

FORMAT = 1


class JournalError(Exception):
    """A journal cannot be written, read or continued; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial's outcome for one use of the key, with what it was derived from."""

    verdict: Verdict
    anomalies: tuple[Anomaly, ...]
    reason: str
    counts: dict[str, int]

    @property
    def kind(self) -> list[Any]:
        """What makes it distinct; of the counts their tools and order, not the arguments that an item is about."""
        counts = [[name.partition("{")[0], count] for name, count in self.counts.items()]
        return [self.verdict, self.anomalies, self.reason, counts]


@dataclass(frozen=True, slots=True)
class Record:
    """A finished trial.

    Attributes:
        shot: id of its shot.
        number: its number within the shot, from 0.
        round: 0 for trials that explore, 1 for the planned ones, 2 for the fresh ones of a shot whose trials
            differed.
        item: index of its item; in an exploring scenario, of the boundary.
        digest: SHA-256 of its history.
        judged: outcomes by use of the key: `none`, `with`, or `calls` where a key is no dimension.
        exits: how each leg ended.
        checks: each kernel check and whether it held.
        key_kind: `call-id`, `other`, or None where no key was sent.
        boundary: where a trial of an exploring scenario struck.
        history: the full history, where this outcome had not been seen before in its shot; else None.
    """

    shot: str
    number: int
    round: int
    item: int
    digest: str
    judged: dict[str, Judged]
    exits: tuple[str, ...]
    checks: dict[str, bool]
    key_kind: str | None
    history: list[list[Any]] | None
    boundary: str | None = None

    @property
    def outcome(self) -> str:
        """What makes outcomes distinct: verdicts, anomalies, counts, exits and checks."""
        kinds = {key: judged.kind for key, judged in self.judged.items()}
        return json.dumps([kinds, self.exits, self.checks], sort_keys=True)

    @property
    def is_error(self) -> bool:
        """Whether the trial could not be judged in some use of the key."""
        return any(judged.verdict == "ERROR" for judged in self.judged.values())

    def _judged_json(self) -> dict[str, list[Any]]:
        return {k: [j.verdict, j.anomalies, j.reason, j.counts] for k, j in self.judged.items()}

    def to_json(self) -> str:
        """Return the record as a line of the journal."""
        data = {
            "shot": self.shot,
            "number": self.number,
            "round": self.round,
            "item": self.item,
            "digest": self.digest,
            "judged": self._judged_json(),
            "exits": self.exits,
            "checks": self.checks,
            "key_kind": self.key_kind,
            "history": self.history,
            "boundary": self.boundary,
        }
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def record_from_json(data: dict[str, Any]) -> Record:
    """Return the record that `Record.to_json` wrote."""
    judged = {k: Judged(v[0], tuple(v[1]), v[2], v[3]) for k, v in data["judged"].items()}
    return Record(**{**data, "judged": judged, "exits": tuple(data["exits"])})


class Journal:
    """An open journal."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path = path
        self._file = file

    @classmethod
    def begin(cls, path: Path, plan: dict[str, Any]) -> Journal:
        """Begin a journal with the plan of its run.

        Raises:
            JournalError: it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            journal = cls(path, path.open("x", encoding="utf-8"))
        except OSError as error:
            raise JournalError(f"the journal {path} cannot be written: {error.strerror}") from None
        journal._write(json.dumps({"format": FORMAT, **plan}))
        return journal

    @classmethod
    def resume(cls, path: Path) -> Journal:
        """Open a journal to go on with it; a last line that was cut off is removed.

        Raises:
            JournalError: it cannot be written.
        """
        try:
            data = path.read_bytes()
            if not data.endswith(b"\n"):
                with path.open("r+b") as file:
                    file.truncate(data.rfind(b"\n") + 1)
            return cls(path, path.open("a", encoding="utf-8"))
        except OSError as error:
            raise JournalError(f"the journal {path} cannot be continued: {error.strerror}") from None

    def add(self, record: Record) -> None:
        """Append a finished trial."""
        self._write(record.to_json())

    def finish(self) -> None:
        """Say that the run is complete."""
        self._write(json.dumps({"complete": True}))

    def close(self) -> None:
        """Close the file; what could not be written has been said already."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, line: str) -> None:
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} cannot be written: {error.strerror}; make room, then go on with --continue"
            ) from None


def read_journal(path: Path) -> tuple[dict[str, Any], Iterator[Record], bool]:
    """Return a journal's plan, its records, and whether its run is complete.

    Raises:
        JournalError: no journal, or one of another format.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            plan: Any = json.loads(file.readline())
            complete = False
            for line in file:
                complete = line.startswith('{"complete"')
    except (OSError, ValueError) as error:
        raise JournalError(f"{path} is no journal of a run: {error}") from None
    found = plan.get("format") if isinstance(plan, dict) else None
    if found != FORMAT:
        raise JournalError(
            f"{path} is no journal of format {FORMAT}, which this plugpull reads, but {found!r}"
        )
    return plan, _records(path), complete


def _records(path: Path) -> Iterator[Record]:
    # a last line may end within a letter; it is passed over, since it does not end with a line's end
    with path.open(encoding="utf-8", errors="replace") as file:
        file.readline()
        for line in file:
            if line.endswith("\n") and not line.startswith('{"complete"'):
                yield record_from_json(json.loads(line))


def journals(root: Path) -> tuple[Path, ...]:
    """Return the journals of runs below `root`, oldest first."""
    return tuple(sorted(root.glob("*.jsonl")))
