from __future__ import annotations

import csv
import json
import re
import time
import urllib.request
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from arena.publish.build import BuildFailed, build_site
from arena.publish.links import broken_links
from arena.results import read_results
from tests.publish import made

HOSTILE = (
    '</title></script><script>window.stolen=1</script><img src=x onerror="window.stolen=1">'
    "[x](javascript:window.stolen=1) `{{ 7*7 }}` {.q onclick=x} | \u202e\u0000 *b* _i_ ![i](//evil.example/x.png)"
)
LONG = "Ü" * 3000


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(path: Path) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser.found


def test_no_link_of_the_built_site_leads_nowhere(sample_site: Path) -> None:
    assert broken_links(sample_site) == []


def test_the_link_checker_finds_a_missing_page_and_a_missing_anchor(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<a href="gone/">x</a><a href="#gone">x</a><a href="../out">x</a>')
    assert len(broken_links(tmp_path)) == 3


def test_nothing_is_fetched_from_another_host(sample_site: Path) -> None:
    for path in sample_site.rglob("*.html"):
        for tag, attributes in tags(path):
            if tag in ("script", "link", "img", "iframe", "source"):
                address = attributes.get("src") or attributes.get("href") or ""
                assert "//" not in address, f"{path}: {address}"


def test_a_fresh_clone_builds_and_says_that_there_are_no_results(tmp_path: Path) -> None:
    root = made.empty_root(tmp_path / "root")
    built = build_site(root, root / "build")
    assert "There are no results yet" in (built / "index.html").read_text(encoding="utf-8")
    assert broken_links(built) == []


def test_every_results_file_is_published_as_it_is_and_each_page_has_its_own(sample_site: Path) -> None:
    file = sample_site / "data" / "results" / "alpha" / "2.0" / "2026-11-30.json"
    assert len(read_results(file).results) > 0
    page = sample_site / "evidence" / "alpha" / "2.0" / "sync" / "kill-mid-tool.json"
    assert {r.scenario for r in read_results(page).results} == {"kill-mid-tool"}
    rows = list(csv.DictReader((sample_site / "data" / "cells.csv").read_text(encoding="utf-8").splitlines()))
    assert "alpha/2.0/2026-11-29.json" in {row["file"] for row in rows}
    json.loads((sample_site / "data" / "results.schema.json").read_text(encoding="utf-8"))
    ET.parse(sample_site / "changes.xml")
    ET.parse(sample_site / "badges" / "alpha.svg")


def test_a_mode_shows_what_its_durability_costs_as_a_ratio(sample_site: Path) -> None:
    page = (sample_site / "frameworks" / "alpha" / "index.html").read_text(encoding="utf-8")
    row = page[page.index("no transcript") :]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row)[:4] == ["0.300, 0.200", "1.50", "0.120, 0.100", "1.20"]


def test_a_control_is_not_shown(tmp_path: Path) -> None:
    root = made.empty_root(tmp_path / "root")
    made.adapter(root, "no_key", ("plain",), ("1",), title="Known before")
    text = (root / "adapters" / "no_key" / "adapter.toml").read_text(encoding="utf-8")
    text = text.replace('summary = "A', 'control = true\nsummary = "A', 1) + '[[known]]\nverdict = "PASS"\n'
    (root / "adapters" / "no_key" / "adapter.toml").write_text(text, encoding="utf-8")
    made.write(root, made.file([made.result(target="no_key", version="1", mode="plain")]), "no_key", "1")
    built = build_site(root, root / "build")
    assert "Known before" not in (built / "index.html").read_text(encoding="utf-8")
    assert not (built / "evidence").exists()


def test_repository_documents_become_pages_with_links_that_lead_somewhere(tmp_path: Path) -> None:
    root = made.sample_root(tmp_path / "root")
    (root / "findings.md").write_text(
        "# Findings\n\n1. Twice: [cell](evidence/alpha/2.0/sync/kill-mid-tool.md), [data](results/alpha/2.0/2026-11-30.json), "
        "[how](CONTRIBUTING.md), [code](arena/main.py), `[not](a-link.md)`\n",
        encoding="utf-8",
    )
    (root / "CONTRIBUTING.md").write_text("# Contribute\n\nSee [findings](findings.md).\n", encoding="utf-8")
    built = build_site(root, root / "build")
    page = (built / "findings" / "index.html").read_text(encoding="utf-8")
    assert 'href="../evidence/alpha/2.0/sync/kill-mid-tool/"' in page
    assert "2026-11-30.json" in page and "arena/main.py" not in page
    assert broken_links(built) == []


def test_a_link_of_ours_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    root = made.empty_root(tmp_path / "root")
    (root / "findings.md").write_text("# Findings\n\n[gone](#nowhere)\n", encoding="utf-8")
    with pytest.raises(BuildFailed, match="findings"):
        build_site(root, root / "build")


def hostile_root(root: Path) -> Path:
    made.empty_root(root)
    made.adapter(root, "alpha", ("sync",), ("2.0",), title=HOSTILE)
    results = [
        made.result(verdict="FAIL", detail=HOSTILE, stance="contradicts"),
        made.result(key="call-id", detail=LONG),
        made.result(mode=HOSTILE, scenario=HOSTILE, kill_point=HOSTILE, point=HOSTILE, verdict="FAIL"),
        made.result(mode="../../..", scenario=LONG, kill_point="\u202e", point="#", verdict="ERROR"),
    ]
    file = made.file(results, run=HOSTILE)
    bad = {"quote": HOSTILE, "url": "javascript:window.stolen=1", "checked": HOSTILE, "call": HOSTILE}
    file = file.model_copy(
        update={
            "recipes": {made.RECIPE: file.recipes[made.RECIPE].model_copy(update=bad)},
            "promises": {made.PROMISE: file.promises[made.PROMISE].model_copy(update=bad)},
            "witnesses": {
                k: [*v, [1.0, 0, "answer", {"text": HOSTILE}], [HOSTILE], ["x", "y", HOSTILE, {}]]
                for k, v in file.witnesses.items()
            },
        }
    )
    made.write(root, file, "alpha", "2.0")
    return root


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = hostile_root(tmp_path_factory.mktemp("hostile") / "root")
    return build_site(root, root / "build")


def test_hostile_text_adds_no_tag_no_handler_and_no_address(hostile_site: Path) -> None:
    assert broken_links(hostile_site) == []
    scripts = {t for p in hostile_site.rglob("*.html") for t in _scripts(p)}
    assert not any("stolen" in text for text in scripts)
    for path in hostile_site.rglob("*.html"):
        for tag, attributes in tags(path):
            assert not any(name.startswith("on") for name in attributes), f"{path}: {tag} {attributes}"
            for name in ("href", "src"):
                value = attributes.get(name) or ""
                assert "javascript:" not in value and "evil.example" not in value, f"{path}: {tag} {value}"
        text = path.read_text(encoding="utf-8")
        assert "\u202e" not in text and "\x00" not in text
    for path in hostile_site.parent.joinpath("site-source").rglob("*"):
        assert path.resolve().is_relative_to(hostile_site.parent.resolve() / "site-source")


def _scripts(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [part.partition("</script>")[0] for part in text.split("<script")[1:]]


def test_a_hostile_cell_in_the_csv_is_no_formula(tmp_path: Path) -> None:
    root = made.empty_root(tmp_path / "root")
    made.write(root, made.file([made.result(mode='=HYPERLINK("x")')]), "alpha", "2.0")
    from arena.publish.pages import csv_text

    assert "'=HYPERLINK" in csv_text(root / "results")


def test_three_thousand_cells_build_in_ninety_seconds_and_the_first_page_stays_small(
    big_site: tuple[Path, float, int],
) -> None:
    built, seconds, cells = big_site
    assert cells >= 3000
    assert seconds < 90, f"{seconds:.0f} s"
    assert (built / "index.html").stat().st_size < 150_000
    assert broken_links(built) == []


def test_serving_answers_on_loopback(sample_address: str) -> None:
    began = time.monotonic()
    with urllib.request.urlopen(sample_address) as answer:
        assert answer.status == 200
    assert time.monotonic() - began < 5
