"""The built site in headless Chromium: what a reader can do with it, and whether everyone can."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types
from playwright.sync_api import Browser, Page, Request, expect

pytestmark = pytest.mark.browser

PAGES = (
    "",
    "frameworks/",
    "frameworks/alpha/",
    "scenarios/",
    "scenarios/kill-mid-tool/",
    "evidence/alpha/2.0/sync/kill-mid-tool/",
    "compare/",
    "compare/alpha-2.0-and-1.0/",
    "compare/alpha-and-beta/",
    "changes/",
    "data/",
    "methodology/",
)


@pytest.fixture
def page(browser: Browser, sample_address: str) -> Iterator[Page]:
    """A page that fails on errors, on requests to other hosts and on stored data."""
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        opened = context.new_page()
        yield from _guarded(opened, sample_address)
        assert context.cookies() == []


def _guarded(opened: Page, address: str) -> Iterator[Page]:
    errors: list[str] = []
    foreign: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            foreign.append(request.url)

    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("request", asked)
    yield opened
    assert errors == []
    assert foreign == []


def test_the_filter_shows_what_was_asked_and_the_address_keeps_it(page: Page, sample_address: str) -> None:
    page.goto(sample_address)
    expect(page.locator("#pp-status")).to_contain_text("4 of 4 rows")
    page.get_by_label("framework", exact=True).select_option("alpha")
    page.get_by_label("outcome", exact=True).select_option("failing")
    assert page.url.endswith("?framework=alpha&outcome=failing")
    expect(page.locator("tbody[data-f=beta]")).to_be_hidden()
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(page.get_by_label("framework", exact=True)).to_have_value("alpha")
    expect(page.locator("tbody[data-f=beta]")).to_be_hidden()
    for square in page.locator("table.matrix tbody .q:visible").all():
        assert set((square.get_attribute("class") or "").split()) & {"fail", "some"}
    page.get_by_role("button", name="Show everything").click()
    assert "?" not in page.url


def test_an_unknown_value_in_the_address_is_ignored(page: Page, sample_address: str) -> None:
    page.goto(f"{sample_address}?framework=nobody&outcome=%3Cscript%3E&surprise=1")
    expect(page.locator("#pp-status")).to_contain_text("4 of 4 rows")
    assert "?" not in page.url


def test_only_differences_hides_the_columns_that_agree(page: Page, sample_address: str) -> None:
    page.goto(f"{sample_address}?framework=beta")
    page.get_by_label("only differences").check()
    expect(page.locator("#pp-status")).to_contain_text("no differences among these rows")
    assert "differences=1" in page.url


def test_the_current_view_is_saved_as_csv(page: Page, sample_address: str, tmp_path: Path) -> None:
    page.goto(f"{sample_address}?framework=beta")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save this view as CSV").click()
    path = tmp_path / "view.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert rows and {row["framework"] for row in rows} == {"Beta"}


def test_a_cell_leads_to_its_evidence_at_its_point(page: Page, sample_address: str) -> None:
    page.goto(sample_address)
    page.locator("table.matrix tbody a.q").first.click()
    page.wait_for_url("**/evidence/**")
    anchor = page.url.partition("#")[2]
    expect(page.locator(f"[id='{anchor}']")).to_be_in_viewport()
    assert page.locator("table.timeline").count() > 0
    expect(page.get_by_text("plugpull run ").first).to_be_visible()


def test_two_sides_are_compared_and_the_address_keeps_them(page: Page, sample_address: str) -> None:
    page.goto(f"{sample_address}compare/")
    page.get_by_label("right").select_option("Beta@0.1/only")
    expect(page.locator("#pp-compared thead")).to_contain_text("Beta 0.1 only")
    assert "right=Beta" in page.url
    page.reload()
    expect(page.get_by_label("right")).to_have_value("Beta@0.1/only")


def test_the_keyboard_alone_reaches_and_uses_the_filter_and_a_cell(page: Page, sample_address: str) -> None:
    page.goto(sample_address)
    reached: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.className + '#' + document.activeElement.textContent")
        )
        if reached[-1].startswith("q "):
            break
    assert any(name.endswith("#Filter") for name in reached)
    assert any(name.startswith("matrix-wrap") for name in reached)
    page.keyboard.press("Enter")
    page.wait_for_url("**/evidence/**")
    page.goto(sample_address)
    page.get_by_role("link", name="Filter", exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "pp-framework"
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("framework", exact=True)).to_have_value("alpha")


def test_the_filter_answers_within_a_tenth_of_a_second_on_thousands_of_cells(
    browser: Browser, big_address: str
) -> None:
    with browser.new_context() as context:
        opened = context.new_page()
        opened.goto(big_address)
        for name, value in (("outcome", "failing"), ("mode", "graph-sync"), ("key", "with")):
            opened.locator(f"#pp-{name}").select_option(value)
            assert float(opened.locator("table.matrix").get_attribute("data-took") or "999") < 100


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_complete_without_javascript_and_fits_a_phone(
    browser: Browser, sample_address: str, path: str
) -> None:
    with browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844}) as context:
        opened = context.new_page()
        opened.goto(sample_address + path)
        expect(opened.locator("h1").first).to_be_visible()
        if not path:
            assert opened.locator("table.matrix tbody a.q:visible").count() > 5
            assert not opened.locator("#filter").is_visible()
    with browser.new_context(viewport={"width": 390, "height": 844}) as context:
        opened = context.new_page()
        opened.goto(sample_address + path)
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390


def test_search_finds_a_scenario_and_nothing_is_stored(page: Page, sample_address: str) -> None:
    page.goto(sample_address)
    page.locator("input[name=query]").fill("payment")
    expect(page.locator(".md-search-result__item").first).to_be_visible(timeout=60_000)
    page.goto(f"{sample_address}data/")
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_paper_shows_the_whole_matrix(page: Page, sample_address: str) -> None:
    page.goto(sample_address)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.matrix-wrap')).overflow") == "visible"


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("width", (390, 1440))
def test_axe_finds_nothing(browser: Browser, sample_address: str, width: int, scheme: str) -> None:
    shots = Path(__file__).resolve().parents[2] / "build" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    found: list[str] = []
    colors: Literal["dark", "light"] = "dark" if scheme == "dark" else "light"
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colors) as context:
        opened = context.new_page()
        for path in PAGES:
            opened.goto(sample_address + path)
            opened.wait_for_timeout(150)
            name = path.strip("/").replace("/", "-") or "home"
            opened.screenshot(path=shots / f"{name}-{width}-{scheme}.png")
            answer = Axe().run(opened).response
            for fault in answer["violations"]:
                found.append(f"/{path} {fault['id']}: {[n['html'][:160] for n in fault['nodes']][:3]}")
            for fault in answer["incomplete"]:
                equal = [n["html"][:160] for n in fault["nodes"] if "equalRatio" in str(n)]
                if equal:
                    found.append(f"/{path} {fault['id']} (equal colours): {equal[:3]}")
    assert not found, "\n".join(found)
