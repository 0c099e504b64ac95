"""The journal: killed at any byte, it loses at most the line that was being written."""

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.journal import FORMAT, Journal, JournalError, Judged, Record, journals, read_journal


def record(number: int, *, history: bool = False) -> Record:
    judged = {"none": Judged("FAIL", ("duplicated",), "", {'charge_card{"order":"ü"}': 2})}
    rows = [[0.0, 0, "answer", {"text": "naïve"}]] if history else None
    return Record("shot", number, 1, 0, "d" * 64, judged, ("killed 9",), {"a check": True}, "call-id", rows)


RECORDS = [record(n, history=n == 0) for n in range(4)]


def written(folder: Path, *, complete: bool = False) -> Path:
    path = folder / "run.jsonl"
    path.unlink(missing_ok=True)
    journal = Journal.begin(path, {"id": "run"})
    for each in RECORDS:
        journal.add(each)
    if complete:
        journal.finish()
    journal.close()
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    plan, records, complete = read_journal(written(tmp_path))
    assert plan == {"format": FORMAT, "id": "run"}
    assert list(records) == RECORDS
    assert not complete


def test_a_run_that_is_complete_says_so(tmp_path: Path) -> None:
    _, records, complete = read_journal(written(tmp_path, complete=True))
    assert complete
    assert list(records) == RECORDS


@given(st.data())
def test_a_journal_cut_at_any_byte_goes_on_without_losing_or_repeating_a_whole_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = written(tmp_path_factory.mktemp("cut"))
    whole = path.read_bytes()
    plan_length = whole.index(b"\n") + 1
    cut = data.draw(st.integers(plan_length, len(whole)))
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n") - 1
    _, records, _ = read_journal(path)
    assert list(records) == RECORDS[:kept]
    journal = Journal.resume(path)
    for each in RECORDS[kept:]:
        journal.add(each)
    journal.close()
    assert path.read_bytes() == whole


def test_a_journal_cut_within_a_letter_can_be_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes()
    at = whole.index("ü".encode()) + 1
    path.write_bytes(whole[:at])
    _, records, _ = read_journal(path)
    assert list(records) == []


def test_a_record_is_in_the_file_as_soon_as_it_is_added(tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path / "run.jsonl", {"id": "run"})
    journal.add(RECORDS[1])
    _, records, _ = read_journal(journal.path)
    assert list(records) == [RECORDS[1]]
    journal.close()


def test_a_journal_is_never_written_over(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(JournalError, match=r"run\.jsonl"):
        Journal.begin(path, {"id": "another"})


def test_a_full_disk_is_an_error_that_names_the_journal_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.symlink_to("/dev/full")
    with pytest.raises(JournalError) as error:
        Journal(path, path.open("a", encoding="utf-8")).add(RECORDS[0])
    assert str(path) in str(error.value)
    assert os.strerror(errno.ENOSPC) in str(error.value)
    assert "--continue" in str(error.value)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    with pytest.raises(JournalError, match="runs"):
        Journal.begin(tmp_path / "runs" / "run.jsonl", {})


@pytest.mark.parametrize("text", ["", "hello\n", "[1]\n", '{"format": 99}\n', "{}\n"])
def test_what_is_no_journal_of_this_format_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JournalError, match=r"odd\.jsonl"):
        read_journal(path)


def test_a_missing_journal_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"gone\.jsonl"):
        read_journal(tmp_path / "gone.jsonl")


def test_journals_are_listed_oldest_first(tmp_path: Path) -> None:
    for name in ("20260102-000000-1", "20260101-000000-9"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"format": FORMAT}), encoding="utf-8")
    assert [p.stem for p in journals(tmp_path)] == ["20260101-000000-9", "20260102-000000-1"]
