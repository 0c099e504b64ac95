"""Builds the site: writes its source, runs MkDocs strictly, serves the result. Starts processes and writes files.

It knows folders and commands; what stands on a page is not its business.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from arena.publish.collection import collect
from arena.publish.pages import SiteWriter
from arena.results import ResultsError
from arena.scenario import find_scenarios


class BuildFailed(ResultsError):
    """MkDocs found a fault; the text has its words and names the page."""


def build_site(root: Path, build: Path) -> Path:
    """Write the pages of a root and build them, and return the built folder.

    Args:
        root: has `site/`, and may have `results/`, `adapters/`, `findings.md`, `CHANGELOG.md`, `CONTRIBUTING.md`.
        build: where the source (`site-source`) and the site (`site`) are put; what was there of both goes.

    Raises:
        ResultsError, AdapterError: something that the site is made from is wrong.
        BuildFailed: MkDocs warned: a page has a link or an anchor that leads nowhere.
    """
    source, built, config = build / "site-source", build / "site", build / "mkdocs.yml"
    for folder in (source, built):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    site_url = os.environ.get("PLUGPULL_SITE_URL", "")
    site_url = site_url and site_url.rstrip("/") + "/"
    written = SiteWriter(root, source, collect(root, find_scenarios()), site_url).write()
    config.write_text(_config(root, source, built, written.nav, site_url), encoding="utf-8")
    _mkdocs(config)
    return built


def _config(root: Path, source: Path, built: Path, nav: list[Any], site_url: str) -> str:
    settings: dict[str, Any] = {
        "INHERIT": str((root / "site" / "mkdocs.yml").absolute()),
        "docs_dir": str(source.absolute()),
        "site_dir": str(built.absolute()),
        "theme": {"custom_dir": str((root / "site" / "theme").absolute())},
        "nav": nav,
    }
    if site_url:
        settings["site_url"] = site_url
    return json.dumps(settings, indent=1) + "\n"  # JSON is YAML


def _mkdocs(config: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith(("WARNING", "ERROR", "Aborted"))]
    if done.returncode:
        raise BuildFailed(
            "\n".join(["mkdocs build --strict failed:", *(said or done.stderr.splitlines()[-20:])])
        )


def serve_site(folder: Path) -> None:
    """Serve a built site on a free port of loopback, print its address, and go on until interrupted."""
    with site_server(folder) as server:
        print(f"serving {address_of(server)} (end with Ctrl-C)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def site_server(folder: Path) -> http.server.ThreadingHTTPServer:
    """Return a server of a built site, bound to a free port of loopback and not yet serving."""
    handler = functools.partial(_Quiet, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


def address_of(server: http.server.ThreadingHTTPServer) -> str:
    """Return the address that a server answers at."""
    return f"http://127.0.0.1:{server.server_address[1]}/"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: a line for each request would bury the address."""
