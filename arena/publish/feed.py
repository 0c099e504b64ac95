"""The Atom feed of published runs, and the badges of frameworks. Pure text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from arena.publish.changes import Event
from arena.publish.collection import Collection
from arena.publish.recommendation import Recommendation
from arena.publish.text import slug, visible

_ATOM = "http://www.w3.org/2005/Atom"


def atom(collection: Collection, events: Sequence[Event], site: str = "") -> str:
    """Return the feed.

    Args:
        collection: all that is published.
        events: published runs, newest first.
        site: the site's address ending in a slash; without one, links are relative to the feed.
    """
    ET.register_namespace("", _ATOM)
    feed = ET.Element(f"{{{_ATOM}}}feed")
    _add(feed, "title", "plugpull: published runs")
    _add(feed, "id", site or "urn:plugpull:runs")
    _add(
        feed,
        "updated",
        f"{_day(events[0].source.file.run.date)}T00:00:00Z" if events else "1970-01-01T00:00:00Z",
    )
    _add(_add(feed, "author", ""), "name", "plugpull")
    ET.SubElement(feed, f"{{{_ATOM}}}link", rel="self", href=f"{site}changes.xml")
    for event in events:
        source = event.source
        entry = _add(feed, "entry", "")
        _add(entry, "title", f"{collection.name(source.target)} {source.version}: {event.sentence}")
        _add(
            entry,
            "id",
            f"urn:plugpull:run:{slug(source.file.run.id)}:{slug(source.target)}:{slug(source.version)}",
        )
        _add(entry, "updated", f"{_day(source.file.run.date)}T00:00:00Z")
        ET.SubElement(
            entry, f"{{{_ATOM}}}link", rel="alternate", href=f"{site}changes/#{event_anchor(event)}"
        )
        lines = [
            f"{c.at.mode} {c.at.scenario} {c.at.point} key={c.at.key or '-'}: "
            f"{c.before.verdict if c.before else '-'} → {c.after.verdict if c.after else '-'}"
            for c in event.changes[:50]
        ]
        _add(entry, "summary", "\n".join([event.sentence, *lines]))
    ET.indent(feed)
    return ET.tostring(feed, encoding="unicode", xml_declaration=True) + "\n"


def _day(date: str) -> str:
    parts = date.split("-")
    sound = len(parts) == 3 and all(part.isascii() and part.isdigit() for part in parts) and len(date) == 10
    return date if sound else "1970-01-01"


def event_anchor(event: Event) -> str:
    """Return an event's anchor on the page of changes."""
    return slug(
        "-".join((event.source.target, event.source.version, event.source.path.rpartition("/")[2][:-5]))
    )


def _add(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}")
    element.text = visible(text) or None
    return element


def badge_message(best: Recommendation | None) -> tuple[str, str]:
    """Return a badge's message and its colour: facts of the recommendation, no score."""
    if best is None:
        return "no verdict", "#5f6368"
    pair = f"{best.mode} {best.key_words}".strip()
    if best.failing:
        return f"{pair}: {len(best.failing)} of {best.judged} cells fail", "#a33400"
    return f"{pair}: no cell of {best.judged} fails", "#00604a"


def badge_json(name: str, best: Recommendation | None) -> str:
    """Return a badge in the form of shields.io's endpoint schema."""
    message, color = badge_message(best)
    label = f"plugpull {visible(name, 40)}" + (f" {visible(best.version, 20)}" if best else "")
    data = {"schemaVersion": 1, "label": label, "message": visible(message, 120), "color": color}
    return json.dumps(data, ensure_ascii=False) + "\n"


def badge_svg(name: str, best: Recommendation | None) -> str:
    """Return a badge as an SVG that needs no font and loads nothing."""
    data = json.loads(badge_json(name, best))
    label, message = str(data["label"]), str(data["message"])
    left, right = 14 + round(6.6 * len(label)), 14 + round(6.6 * len(message))
    svg = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", width=str(left + right), height="20", role="img"
    )
    svg.set("aria-label", f"{label}: {message}")
    ET.SubElement(svg, "title").text = f"{label}: {message}"
    ET.SubElement(svg, "rect", width=str(left), height="20", fill="#3b3f44")
    ET.SubElement(svg, "rect", x=str(left), width=str(right), height="20", fill=str(data["color"]))
    text = {"fill": "#fff", "font-family": "Verdana,DejaVu Sans,sans-serif", "font-size": "11", "y": "14"}
    for x, width, said in ((7, left - 14, label), (left + 7, right - 14, message)):
        fit = {"x": str(x), "textLength": str(width), "lengthAdjust": "spacingAndGlyphs"}
        element = ET.SubElement(svg, "text", {**text, **fit})
        element.text = said
    return ET.tostring(svg, encoding="unicode") + "\n"
