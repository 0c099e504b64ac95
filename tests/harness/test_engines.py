"""Engine servers: healthy before anything uses them, gone when the run is, and clear about what went wrong."""

import sys
import textwrap
from pathlib import Path

import pytest

from harness import kernel
from harness.engines import EngineFailed, Engines
from tests.checkout import eventually

HEALTHY = """
    import json, os, sys
    print(json.dumps({"address": os.environ["PLUGPULL_ENGINE_DIR"]}), flush=True)
    sys.stdin.read()
"""


def program(tmp_path: Path, source: str) -> tuple[str, str]:
    file = tmp_path / "engine.py"
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    return sys.executable, str(file)


def marked(mark: int) -> list[int]:
    return [
        line.pid for line in kernel.processes() if kernel.mark_of(line.pid) == mark and line.state not in "ZX"
    ]


def test_an_engine_says_where_it_listens_and_has_a_directory_of_its_own(tmp_path: Path) -> None:
    with Engines() as engines:
        engine = engines.start("toy", program(tmp_path, HEALTHY))
        assert Path(engine.address).is_dir()
        assert marked(engine.mark) == [engine.process.pid]
    assert not marked(engine.mark)
    assert not engine.directory.exists()


def test_an_engine_that_asks_nothing_of_the_run_gets_nothing_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "1")
    source = """
        import json, os, sys
        print(json.dumps({"address": " ".join(sorted(os.environ))}), flush=True)
        sys.stdin.read()
    """
    with Engines() as engines:
        assert "SECRET" not in engines.start("toy", program(tmp_path, source)).address.split()


def test_what_an_engine_left_in_another_session_ends_with_the_run(tmp_path: Path) -> None:
    source = """
        import json, subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        print(json.dumps({"address": "a"}), flush=True)
        sys.stdin.read()
    """
    with Engines() as engines:
        engine = engines.start("toy", program(tmp_path, source))
        assert eventually(lambda: len(marked(engine.mark)) == 2)
    assert not marked(engine.mark)


def test_an_engine_that_does_not_end_when_asked_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engines.END_LIMIT_S", 0.3)
    source = """
        import json, time
        print(json.dumps({"address": "a"}), flush=True)
        time.sleep(600)
    """
    with Engines() as engines:
        engine = engines.start("toy", program(tmp_path, source))
    assert not marked(engine.mark)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "import sys; sys.exit('no room for a database')",
            "ended with status 1; it said:\nno room for a database",
        ),
        ("print('ready', flush=True); import time; time.sleep(600)", "its first line must be JSON"),
        ("import time; time.sleep(600)", "not healthy after 0.5 s and said nothing"),
    ],
)
def test_an_engine_that_does_not_get_healthy_says_why_and_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    mark = kernel.new_mark()
    monkeypatch.setattr("harness.engines.kernel.new_mark", lambda: mark)
    monkeypatch.setattr("harness.engines.END_LIMIT_S", 0.3)
    with Engines() as engines, pytest.raises(EngineFailed) as failed:
        engines.start("toy", program(tmp_path, source), limit_s=0.5 if "0.5" in said else 30.0)
    assert said in str(failed.value)
    assert "engine toy" in str(failed.value)
    assert not marked(mark)
