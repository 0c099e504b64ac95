"""Writes the site's source: a complete folder of Markdown with the data files beside it.

It fills templates from page models and writes files; it judges nothing and starts nothing.
"""

from __future__ import annotations

import itertools
import json
import posixpath
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from arena.publish import evidence, fields, matrix
from arena.publish.changes import Course, courses, differences, events, outcome_words, version_cells
from arena.publish.collection import Collection, Place, anchors, timing_words, use
from arena.publish.costs import costs, overheads
from arena.publish.feed import atom, badge_json, badge_message, badge_svg, event_anchor
from arena.publish.outcomes import STANCES, square
from arena.publish.recommendation import RULE, Recommendation, recommend
from arena.publish.text import block, escape, finalize, outside, slug, title
from arena.results import Result, json_schema
from arena.words import ANOMALIES, MEANING

#: Repository documents that become pages, and where a missing one leaves a page that says so.
DOCUMENTS: Mapping[str, tuple[str, str]] = {
    "findings.md": ("findings.md", "Findings"),
    "CONTRIBUTING.md": ("contribute.md", "Contribute"),
    "CHANGELOG.md": ("method-changes.md", "Changes of the method"),
}
#: Bytes that the first page may have: it is read on phones.
HOME_LIMIT = 148_000
#: Bytes that the theme adds to a page, at most: measured, with what Markdown takes away subtracted.
THEME_SIZE = 17_000
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        nav: the navigation, as MkDocs takes it.
        pages: number of Markdown pages.
    """

    nav: list[Any]
    pages: int


def html_size(markdown: str) -> int:
    """Return about how many bytes the page of a home page's Markdown will have, the theme's own included."""
    return len(markdown.encode()) + THEME_SIZE


class SiteWriter:
    """Fills the templates of a root and writes pages into one folder."""

    def __init__(self, root: Path, source: Path, collection: Collection, site_url: str = "") -> None:
        self.root = root
        self.source = source
        self.collection = collection
        self.site_url = site_url
        self.pages = 0
        self.templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(root / "site" / "templates"),
            autoescape=True,
            finalize=finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self.templates.globals.update(
            c=collection,
            page=_page_link,
            outside=outside,
            block=block,
            slug=slug,
            safe_title=lambda text: Markup(json.dumps(title(text), ensure_ascii=False)),
            place=Place,
            links=lambda *place: matrix.links(collection, Place(*place)),
            framework_page=framework_page,
            scenario_page=scenario_page,
            result_link=self.result_link,
            timing_words=timing_words,
            outcome_words=outcome_words,
            use=use,
            square=square,
            stances=STANCES,
            rule=RULE,
            one=_one_line,
        )

    def write(self) -> Written:
        """Write every page and file, and return the navigation."""
        shutil.copytree(self.root / "site" / "docs", self.source, dirs_exist_ok=True)
        best = {target: recommend(self.collection, target) for target in self.collection.tested}
        self._home()
        self._frameworks(best)
        self._scenarios()
        for sheet in self.collection.sheets.values():
            points = evidence.points_of(sheet)
            self._page(
                sheet.place.page,
                "evidence.md.jinja",
                sheet=sheet,
                points=points,
                said=evidence.docs_of(points),
                versions=evidence.versions_line(self.collection, sheet),
                run=evidence.facts_of_run(sheet.source.file),
                recipe=next(
                    (
                        sheet.source.file.recipes[r.recipe]
                        for r in sheet.results
                        if r.recipe in sheet.source.file.recipes
                    ),
                    None,
                ),
            )
            self._file(sheet.place.data, evidence.sheet_json(sheet))
        self._compare(best)
        happened = events(self.collection)
        self._page("changes.md", "changes.md.jinja", events=happened, anchor=event_anchor)
        self._file("changes.xml", atom(self.collection, happened, self.site_url))
        self._data()
        self._page("methodology.md", "methodology.md.jinja", anomalies=[(a, MEANING[a]) for a in ANOMALIES])
        for name, (page, heading) in DOCUMENTS.items():
            self._document(name, page, heading)
        return Written(self._nav(), self.pages)

    def _home(self) -> None:
        """Write the first page with as much detail as fits: links for each square, for each cell, or fewer rows."""
        rows = matrix.home(self.collection)
        template = self.templates.get_template("home.md.jinja")
        for level in (0, 1, 2):
            text = template.render(rows=rows, level=level)
            if html_size(text) <= HOME_LIMIT:
                break
        self._file("index.md", text)
        self.pages += 1

    def _page(self, file: str, template: str, /, **values: Any) -> None:
        self._file(file, self.templates.get_template(template).render(**values))
        self.pages += 1

    def _file(self, name: str, text: str) -> None:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")

    def result_link(self, result: Result) -> Markup:
        """Return a Markdown target: the page and anchor of a result's evidence."""
        place = Place(result.target, result.version, result.mode, result.scenario)
        sheet = self.collection.sheets[place]
        where = anchors(sheet.results).get(result.point)
        return Markup(f"/{place.page}" + (f"#{where}" if where else ""))

    def _frameworks(self, best: Mapping[str, Recommendation | None]) -> None:
        collection = self.collection
        self._page("frameworks/index.md", "frameworks.md.jinja", best=best)
        for target in collection.targets:
            tested = target in collection.tested
            version = collection.newest(target) if tested else ""
            moving, still = courses(collection, target) if tested else ((), 0)
            modes = collection.modes(target, version) if tested else ()
            listed = tuple(collection.adapters[target].modes) if target in collection.adapters else ()
            self._page(
                framework_page(target),
                "framework.md.jinja",
                target=target,
                adapter=collection.adapters.get(target),
                version=version,
                best=best.get(target),
                modes=(*modes, *(m for m in listed if m not in modes)),
                tables={
                    mode: tuple(
                        row
                        for _, names in collection.columns
                        for name in names
                        for row in matrix.points(collection, Place(target, version, mode, name))
                    )
                    for mode in modes
                },
                courses=_joined(moving),
                still=still,
                costs=costs(collection, target, version) if tested else (),
                overheads=overheads(collection, target, version) if tested else (),
                pairs=[(a, b, compare_page(target, a, b)) for a, b in _pairs(collection.versions(target))]
                if tested
                else [],
            )
            if tested:
                name = slug(target)
                self._file(f"badges/{name}.svg", badge_svg(collection.name(target), best[target]))
                self._file(f"badges/{name}.json", badge_json(collection.name(target), best[target]))

    def _scenarios(self) -> None:
        collection = self.collection
        with_results = {name for _, names in collection.columns for name in names}
        names = (*collection.scenarios, *sorted(with_results - set(collection.scenarios)))
        self._page("scenarios/index.md", "scenarios.md.jinja", names=names, tested=with_results)
        for name in names:
            rows = [
                (target, version, mode, matrix.points(collection, Place(target, version, mode, name)))
                for target in collection.tested
                for version in [collection.newest(target)]
                for mode in collection.modes(target, version)
                if Place(target, version, mode, name) in collection.sheets
            ]
            points = list(dict.fromkeys((p.name, p.point) for *_, found in rows for p in found))
            scenario = collection.scenarios.get(name)
            doc = scenario.doc if scenario else ""
            self._page(
                scenario_page(name),
                "scenario.md.jinja",
                name=name,
                scenario=scenario,
                heading=doc.partition("\n")[0] if doc else name,
                doc=Markup(doc.partition("\n")[2]),
                rows=rows,
                points=points,
            )

    def _compare(self, best: Mapping[str, Recommendation | None]) -> None:
        collection = self.collection
        version_pairs: list[tuple[str, str, str, str]] = []
        for target in collection.tested:
            for newer, older in _pairs(collection.versions(target)):
                page = compare_page(target, newer, older)
                version_pairs.append((target, newer, older, page))
                before = version_cells(collection, target, older)
                after = version_cells(collection, target, newer)
                self._page(
                    page,
                    "compare-versions.md.jinja",
                    target=target,
                    newer=newer,
                    older=older,
                    changes=differences(before, after),
                    both=len(before.keys() & after.keys()),
                    only_new=_scope(after.keys() - before.keys()),
                    only_old=_scope(before.keys() - after.keys()),
                )
        framework_pairs = []
        tested = collection.tested
        for number, a in enumerate(tested):
            for b in tested[number + 1 :]:
                page = f"compare/{slug(a)}-and-{slug(b)}.md"
                framework_pairs.append((a, b, page))
                self._page(page, "compare-frameworks.md.jinja", sides=(a, b), best=best)
        self._page("compare/index.md", "compare.md.jinja", versions=version_pairs, frameworks=framework_pairs)
        self._file(
            "data/cells.json", json.dumps(compare_data(collection), ensure_ascii=False, separators=(",", ":"))
        )

    def _data(self) -> None:
        for source in self.collection.files:
            if source.target in self.collection.hidden:
                continue
            path = self.source / source.copy
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / "results" / source.path, path)
        self._file("data/results.schema.json", json_schema())
        self._file("data/cells.csv", csv_text(self.root / "results"))
        files = [f for f in self.collection.files[::-1] if f.target not in self.collection.hidden]
        self._page("data/index.md", "data.md.jinja", tables=fields.tables(), files=files, badge=badge_message)

    def _document(self, name: str, page: str, heading: str) -> None:
        path = self.root / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            front = f"---\ntitle: {json.dumps(heading)}\n---\n"
            self._file(page, front + self.rewritten(text, page))
        else:
            self._file(page, f"# {heading}\n\nThere is nothing here yet.\n")
        self.pages += 1

    def rewritten(self, text: str, page: str) -> str:
        """Return a repository document with links that the site can follow; others become their text."""

        def replace(match: re.Match[str]) -> str:
            image, said, target = match.groups()
            if re.match(r"[a-z]+://|mailto:|#", target) and not image:
                return match.group()
            path, _, fragment = target.partition("#")
            path = posixpath.normpath(path.lstrip("/"))
            found = DOCUMENTS.get(path, ("", ""))[0] or self._data_copy(path)
            if not found and (self.source / path).suffix == ".md" and (self.source / path).is_file():
                found = path
            if not found or image:
                return said
            start = posixpath.dirname(page) or "."
            return f"[{said}]({posixpath.relpath(found, start)}{'#' + fragment if fragment else ''})"

        return _outside_code(text, lambda part: _LINK.sub(replace, part))

    def _data_copy(self, path: str) -> str:
        for source in self.collection.files:
            if path == f"results/{source.path}":
                return source.copy
        return ""

    def _nav(self) -> list[Any]:
        collection = self.collection
        return [
            {"Results": "index.md"},
            {
                "Frameworks": [
                    "frameworks/index.md",
                    *({title(collection.name(t)): framework_page(t)} for t in collection.targets),
                ]
            },
            {"Scenarios": ["scenarios/index.md", *(scenario_page(n) for n in collection.scenarios)]},
            {"Findings": "findings.md"},
            {"Changes": "changes.md"},
            {"Compare": "compare/index.md"},
            {"Method": ["methodology.md", "method-changes.md"]},
            {"Data": "data/index.md"},
            {"Contribute": "contribute.md"},
        ]


def framework_page(target: str) -> str:
    """Return the source of a framework's page."""
    return f"frameworks/{slug(target)}.md"


def scenario_page(name: str) -> str:
    """Return the source of a scenario's page."""
    return f"scenarios/{slug(name)}.md"


def compare_page(target: str, newer: str, older: str) -> str:
    """Return the source of the page that compares two versions."""
    return f"compare/{slug(target)}-{slug(newer)}-and-{slug(older)}.md"


def compare_data(collection: Collection) -> Mapping[str, Any]:
    """Return what the page of comparison lets its reader choose from: squares of every framework, version, mode."""
    columns = [name for _, names in collection.columns for name in names]
    sides = []
    for target in collection.tested:
        for version in collection.versions(target):
            for mode in collection.modes(target, version):
                shown = {}
                for name in columns:
                    found = matrix.links(collection, Place(target, version, mode, name))
                    shown[name] = [
                        [
                            link.label,
                            link.square.kind,
                            link.square.color,
                            f"{link.square.symbol} {link.square.word}",
                            link.square.number,
                            f"{link.page[:-3]}/#{link.anchor}" if link.page else "",
                        ]
                        for link in found
                    ]
                sides.append(
                    {"name": collection.name(target), "version": version, "mode": mode, "squares": shown}
                )
    return {"columns": columns, "sides": sides}


def csv_text(results: Path) -> str:
    """Return every published cell as CSV: the frame of `arena.results.frame`, one row a cell, every run."""
    from arena.results import frame

    found = frame(results, newest_run_only=False)
    if found.empty:
        return "id,target,version,mode,scenario,kill_point,point,timing,key,verdict\n"
    found["file"] = [Path(f).relative_to(results).as_posix() for f in found["file"]]
    for name in ("anomalies", "stances"):
        found[name] = [";".join(values) for values in found[name]]
    for name in found.columns:
        found[name] = [_inert(value) for value in found[name]]
    return str(found.to_csv(index=False, lineterminator="\n"))


def _inert(value: Any) -> Any:
    """Return a value that a spreadsheet does not run as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _page_link(page: str, anchor: str = "") -> Markup:
    return Markup(f"/{page}" + (f"#{anchor}" if anchor else ""))


def _one_line(text: Any) -> Markup:
    return escape(str(text))


def _pairs(versions: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of versions that get a page: neighbours, and the newest with the oldest."""
    found = list(itertools.pairwise(versions))
    if len(versions) > 2:
        found.append((versions[0], versions[-1]))
    return found


def _joined(moving: Sequence[Course]) -> list[tuple[str, list[Course]]]:
    """Return courses that say the same together, most frequent first."""
    found: dict[str, list[Course]] = {}
    for course in moving:
        found.setdefault(course.sentence, []).append(course)
    return sorted(found.items(), key=lambda pair: -len(pair[1]))


def _scope(keys: set[Any]) -> str:
    modes = sorted({k.mode for k in keys})
    scenarios = sorted({k.scenario for k in keys})
    return f"{len(keys)} cells (modes {', '.join(modes)}; scenarios {', '.join(scenarios)})" if keys else ""


def _outside_code(text: str, change: Any) -> str:
    """Apply a change to Markdown text outside fenced blocks and code spans."""
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.M | re.S)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))
