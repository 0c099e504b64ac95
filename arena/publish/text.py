"""Text from strangers, made harmless for Markdown, HTML, addresses and file names. Pure; knows no page.

Results and adapters are written by people we do not know. Every string of theirs passes through one function
of this module before it reaches a page.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from markupsafe import Markup

#: Characters that mean something to HTML, to Python-Markdown or to its extensions.
_SPECIAL = re.compile(r"""[\\`*_{}\[\]<>&"'!|~^:#=+$]""")
#: What a title may not carry: themes print titles unescaped.
_UNFIT_FOR_TITLES = re.compile(r"""[<>&"'`\\{}\[\]]""")
_SPACE = re.compile(r"\s+")
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
#: Characters of one text that a page shows; the whole is in the results file.
LONGEST = 4000


def visible(text: str, longest: int = LONGEST) -> str:
    """Return text with characters that cannot be seen, or that turn the reading order, written as escapes."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text if text.isprintable() else "".join(_seen(character) for character in text)


def _seen(character: str) -> str:
    if character in "\n\t ":
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\u{ord(character):04x}"
    return character


@lru_cache(maxsize=1 << 16)
def escape(text: str, longest: int = LONGEST) -> Markup:
    """Return text as one line that is inert in Markdown, in HTML and in an attribute."""
    line = _SPACE.sub(" ", visible(text, longest))
    return Markup(_SPECIAL.sub(lambda match: f"&#{ord(match.group())};", line))


def block(text: str, longest: int = LONGEST) -> Markup:
    """Return text for a `<pre>`: as `escape`, with its lines kept."""
    lines = visible(text, longest).splitlines()
    kept = (_SPECIAL.sub(lambda match: f"&#{ord(match.group())};", line) for line in lines)
    return Markup("&#10;".join(kept))


def finalize(value: Any) -> Any:
    """Escape whatever a template prints, unless it is markup already."""
    if isinstance(value, Markup):
        return value
    return escape("" if value is None else str(value))


def title(text: str) -> str:
    """Return text fit for a page's title, which themes print as it is."""
    return " ".join(_UNFIT_FOR_TITLES.sub(" ", visible(text, 80)).split()) or "untitled"


def slug(text: str) -> str:
    """Return a name for a folder or an anchor: the text itself where that is safe, else a safe part and a hash."""
    if _SLUG.fullmatch(text) and ".." not in text and not text.endswith("."):
        return text
    safe = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return f"{safe or 'x'}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def address(url: str) -> str | None:
    """Return an address that is safe in an attribute, or None where it is no web address."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    if parts.scheme not in ("https", "http") or not parts.netloc:
        return None
    return quote(url.strip(), safe="/:?#@!$&()*+,;=%~-._")


def outside(url: str, text: str) -> Markup:
    """Return a link to another site, or the bare text where the address is none."""
    safe = address(url)
    if safe is None:
        return escape(text)
    return Markup(f'<a href="{escape(safe)}" rel="noopener">{escape(text)}</a>')
