"""Results: files that are there can be read, follow from their trials, and say what they must."""

import json
from pathlib import Path

import pytest

from arena.adapters import find_adapters
from arena.results import (
    FIT_FOR_GIT,
    SCHEMA,
    ResultsError,
    divided,
    frame,
    json_schema,
    published,
    read_results,
    to_text,
)
from arena.scenario import find_scenarios
from arena.verify import verify_file

ROOT = Path(__file__).resolve().parents[2]
FILES = published(ROOT / "results")
SHOWN = [pytest.param(path, id="-".join(path.relative_to(ROOT / "results").parts)) for path in FILES]


@pytest.mark.parametrize("path", SHOWN)
def test_every_verdict_that_is_published_follows_from_its_trials(path: Path) -> None:
    assert verify_file(FILES[path], find_scenarios()) == []


@pytest.mark.parametrize("path", SHOWN)
def test_every_fail_that_is_published_has_a_stance(path: Path) -> None:
    for result in FILES[path].results:
        if result.verdict == "FAIL":
            assert result.anomalies
            for found in result.anomalies:
                assert found.stance in ("documents", "contradicts", "silent")
                assert (found.promise in FILES[path].promises) == (found.stance != "silent")


@pytest.mark.parametrize("path", SHOWN)
def test_every_published_file_stands_where_it_belongs(path: Path) -> None:
    adapter, version = path.parts[-3], path.parts[-2]
    known = find_adapters(ROOT / "adapters")[adapter]
    assert {(r.target, r.version) for r in FILES[path].results} == {(adapter, version)}
    assert version in {v.version for v in known.versions}
    assert path.stem[:10] == FILES[path].run.date


@pytest.mark.parametrize("path", SHOWN)
def test_no_published_file_is_too_large_for_git(path: Path) -> None:
    assert path.stat().st_size <= FIT_FOR_GIT


@pytest.mark.parametrize("path", SHOWN)
def test_a_file_that_is_too_large_is_divided_by_modes_and_nothing_is_lost(path: Path) -> None:
    whole = FILES[path]
    if len({result.mode for result in whole.results}) == 1:
        assert divided(whole, 1) == (whole,)
        return
    size = len(to_text(whole, packed=True).encode())
    assert divided(whole, size) == (whole,)
    parts = divided(whole, size - 1)
    assert len(parts) > 1
    assert tuple(result for part in parts for result in part.results) == whole.results
    modes = [{result.mode for result in part.results} for part in parts]
    assert sum(map(len, modes)) == len(set().union(*modes))
    for part in parts:
        assert len(to_text(part, packed=True).encode()) < size
        assert verify_file(part, find_scenarios()) == []
        assert part.run == whole.run


@pytest.mark.parametrize("path", SHOWN)
def test_every_published_file_was_gated_by_controls(path: Path) -> None:
    controls = FILES[path].run.controls
    assert controls is not None
    assert controls["cells"] == controls["as_known"] > 0


@pytest.mark.parametrize("path", SHOWN)
def test_a_published_file_is_written_as_it_was_read(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert json.loads(to_text(FILES[path], packed="packed" in stored)) == stored


@pytest.mark.parametrize("path", SHOWN)
def test_packing_loses_nothing(path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.json"
    packed.write_text(to_text(FILES[path], packed=True), encoding="utf-8")
    assert read_results(packed) == FILES[path]


def test_a_schema_that_lies_beside_the_results_is_the_generated_one() -> None:
    for path in (ROOT / "results").glob("*.json"):
        assert path.read_text(encoding="utf-8") == json_schema(), path.name


def test_the_schema_explains_every_field() -> None:
    schema = json.loads(json_schema())
    for name, model in {**schema["$defs"], "ResultsFile": schema}.items():
        for field, said in model["properties"].items():
            assert said.get("description"), f"{name}.{field}"


def test_the_frame_has_one_row_a_cell() -> None:
    if not FILES:
        pytest.skip("nothing is published yet")
    rows = frame(ROOT / "results", newest_run_only=False)
    assert len(rows) == sum(len(file.results) for file in FILES.values())
    newest = frame(ROOT / "results")
    assert not newest["id"].duplicated().any()
    assert set(newest["verdict"]) <= {"PASS", "FAIL", "ERROR", "UNSUPPORTED"}


def test_a_frame_of_nothing_is_empty(tmp_path: Path) -> None:
    assert frame(tmp_path).empty


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"schema": 2, "results": []}', "schema"),
        ('{"schema": "1"}', "schema"),
        ("[]", "schema"),
        ("{}", "schema"),
        ("{", "JSON"),
        ("", "JSON"),
        ('{"schema": 1}', "run"),
        ('{"schema": 1, "wished": 1}', "wished"),
        ('{"schema": 1, "results": "none"}', "results"),
    ],
)
def test_what_is_no_results_file_is_named_with_its_field(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ResultsError) as error:
        read_results(path)
    assert "odd.json" in str(error.value)
    assert named in str(error.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ResultsError, match=r"odd\.json"):
        read_results(tmp_path / "odd.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"gone\.json"):
        read_results(tmp_path / "gone.json")


def test_the_number_of_the_schema_is_the_models() -> None:
    assert json.loads(json_schema())["properties"]["schema"]["const"] == SCHEMA
