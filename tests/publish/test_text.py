from __future__ import annotations

import re

import markdown  # type: ignore[import-untyped]  # it has no types
from hypothesis import given
from hypothesis import strategies as st

from arena.publish.text import address, block, escape, outside, slug, title, visible


@given(st.text(max_size=200))
def test_any_text_renders_as_itself_and_as_nothing_else(text: str) -> None:
    html = markdown.markdown(
        f'<p markdown="span">x{escape(text)}x</p>',
        extensions=["md_in_html", "attr_list", "tables", "def_list"],
    )
    assert re.fullmatch(r"<p>[^<>]*</p>", html)


def test_what_cannot_be_seen_or_turns_the_reading_order_is_written_as_an_escape() -> None:
    assert visible("a\u202eb\x00c\u200bd") == "a\\u202eb\\u0000c\\u200bd"


def test_a_text_of_millions_of_characters_is_cut() -> None:
    assert len(visible("x" * 2_000_000)) == 4000


def test_lines_of_a_block_are_kept_and_blank_lines_cannot_end_it() -> None:
    assert "\n" not in block("a\n\n<script>\n") and block("a\nb").count("&#10;") == 1


def test_a_title_carries_no_markup_even_after_unescaping() -> None:
    assert title("</title><script>alert(1)</script>") == "/title script alert(1) /script"
    assert title("&lt;b&gt;") == "lt;b gt;"


def test_a_slug_is_the_text_where_that_is_safe_and_never_leaves_its_folder() -> None:
    assert slug("1.2.24") == "1.2.24"
    for hostile in ("../../etc", "..", ".", "", "a/b", "A", "<script>", "x" * 500, "\ud800"):
        assert re.fullmatch(r"[a-z0-9-]{1,60}", slug(hostile))
    assert slug("A b") != slug("a-b")


def test_only_web_addresses_become_links() -> None:
    assert address("javascript:alert(1)") is None
    assert address("data:text/html,x") is None
    assert "<a" not in outside("javascript:alert(1)", "docs")
    assert address('https://example.org/"onmouseover="x') == "https://example.org/%22onmouseover=%22x"
