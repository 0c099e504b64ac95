"""Finds links of a built site that lead nowhere. Reads files; asks no network."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class _Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the addresses and anchors of a tag."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif name in ("href", "src") and tag != "base":
                self.links.append(value)


def broken_links(folder: Path) -> list[str]:
    """Return each link inside a built site that leads nowhere, a sentence each.

    Links to other hosts are not followed. A link that leaves the site's folder counts as broken.
    """
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = page
    wrong = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            reason = _fault(folder.resolve(), path, link, pages)
            if reason:
                wrong.append(f"{path.relative_to(folder.resolve())}: {link}: {reason}")
    return wrong


def _fault(folder: Path, path: Path, link: str, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme in ("http", "https", "data"):
        return ""
    if parts.scheme or parts.netloc:
        return "an address that is no web address"
    target = path
    if parts.path:
        start = folder if parts.path.startswith("/") else path.parent
        target = (start / unquote(parts.path).lstrip("/")).resolve()
        if not target.is_relative_to(folder):
            return "leads out of the site"
        if target.is_dir():
            target = target / "index.html"
        if not target.is_file():
            return "there is no such file"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "there is no such anchor"
    return ""
