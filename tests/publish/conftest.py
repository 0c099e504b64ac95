"""Built sites for the tests, each built once, and a browser page that fails on errors and foreign requests."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.publish.build import address_of, build_site, site_server
from tests.publish import made

CHROMIUM = "/usr/bin/chromium"
MISSING = (
    f"{CHROMIUM} is missing: install Debian's package (apt-get update && apt-get install -y chromium) "
    "to run the browser tests"
)


@pytest.fixture(scope="session")
def sample_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two frameworks, with the real scenarios."""
    root = made.sample_root(tmp_path_factory.mktemp("sample") / "root")
    return build_site(root, root / "build")


@pytest.fixture(scope="session")
def sample_address(sample_site: Path) -> Iterator[str]:
    """The address at which the sample is served."""
    with site_server(sample_site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address_of(server)
        server.shutdown()


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of the tests that need Chromium."""
    config.addinivalue_line("markers", "browser: needs Chromium")


@pytest.fixture(scope="session", autouse=True)
def _chromium(request: pytest.FixtureRequest) -> None:
    """Fail in CI where there is no Chromium; elsewhere only the tests that need it are skipped."""
    wanted = any("browser" in item.keywords for item in request.session.items)
    if wanted and shutil.which(CHROMIUM) is None and os.environ.get("CI"):
        pytest.fail(f"{MISSING}; in CI they may not be skipped")


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Chromium of the system, with nothing that calls home."""
    if shutil.which(CHROMIUM) is None:
        pytest.skip(MISSING)
    return {
        "executable_path": CHROMIUM,
        "args": [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    }


@pytest.fixture(scope="session")
def big_site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, int]:
    """A site of more than 3,000 cells, the CPU seconds of its build, and the number of cells."""
    root = made.empty_root(tmp_path_factory.mktemp("big") / "root")
    points = {
        f"scenario-{number}": [
            ("after-effect", f"effect:charge_card#{number}.after@{timing}", True)
            for timing in ("rest", "once")
        ]
        for number in range(17)
    }
    cells = 0
    modes = ("graph-sync", "graph-async", "graph-exit", "agent-sync")
    for target in ("one", "two", "three", "four", "five", "six"):
        made.adapter(root, target, modes, ("1.0.11", "1.0.10"))
        for version in ("1.0.11", "1.0.10"):
            results = made.grid(target, version, modes, points, shift=len(target + version))
            made.write(root, made.file(results), target, version)
            cells += len(results)
    before = os.times()
    built = build_site(root, root / "build")
    after = os.times()
    spent = sum(after[:4]) - sum(before[:4])
    return built, spent, cells


@pytest.fixture(scope="session")
def big_address(big_site: tuple[Path, float, int]) -> Iterator[str]:
    """The address at which the big site is served."""
    with site_server(big_site[0]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address_of(server)
        server.shutdown()
