"""Warm starts: a forked leg is, for the target, a fresh interpreter; where it cannot be one, the leg is cold."""

import signal
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from harness.history import History
from harness.plan import LegPlan
from harness.pool import TrialPool
from tests.trials import CHARGE, CHARGES, Trials, errors, exits, kill, said

BOTH = pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])


def start_kinds(history: History) -> list[str]:
    return [event["start"] for event in history.of("leg-started")]


@BOTH
def test_the_target_is_the_main_module(trials: Trials, warm: bool) -> None:
    source = """
        import sys, plugpull
        VALUE = 7
        import __main__
        plugpull.hello(
            name=__name__, file=__file__, argv=" ".join(sys.argv), value=__main__.VALUE,
            same=sys.modules["__main__"].__dict__ is globals(), path=sys.path[0],
        )
    """
    history = trials.run_twice(source, warm=warm)
    path = str(trials.folder / "target.py")
    for leg, word in enumerate(("start", "resume")):
        assert said(history, leg) == {
            "name": "__main__",
            "file": path,
            "argv": f"{path} {word}",
            "value": "7",
            "same": "True",
            "path": str(trials.folder),
        }


@BOTH
def test_a_target_imports_what_stands_beside_it(trials: Trials, warm: bool) -> None:
    (trials.folder / "beside.py").write_text("VALUE = 'beside'\n", encoding="utf-8")
    source = "import beside, plugpull\nplugpull.hello(value=beside.VALUE)\n"
    assert said(trials.run_once(source, warm=warm))["value"] == "beside"


@BOTH
def test_what_a_main_module_defines_can_be_pickled(trials: Trials, warm: bool) -> None:
    source = """
        import pickle, plugpull
        class Order:
            pass
        plugpull.hello(kind=type(pickle.loads(pickle.dumps(Order()))).__name__)
    """
    assert said(trials.run_once(source, warm=warm))["kind"] == "Order"


@BOTH
@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("sys.exit()", 0),
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("sys.exit(256)", 0),
        ("sys.exit(-1)", 255),
        ("sys.exit(True)", 1),
        ("sys.exit('it went wrong')", 1),
        ("raise ValueError('no')", 1),
        ("os._exit(9)", 9),
        ("raise BaseException('no')", 1),
    ],
)
def test_a_leg_ends_with_the_interpreters_status(
    trials: Trials, warm: bool, ending: str, status: int
) -> None:
    assert exits(trials.run_once(f"import os, sys\n{ending}\n", warm=warm)) == [("exited", status)]


@BOTH
def test_an_interrupt_ends_a_leg_by_its_signal(trials: Trials, warm: bool) -> None:
    source = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    assert exits(trials.run_once(source, warm=warm)) == [("killed", signal.SIGINT)]


@BOTH
def test_an_exception_leaves_its_traceback(trials: Trials, warm: bool) -> None:
    source = """
        def charge():
            raise RuntimeError("the card is blue")
        charge()
    """
    text = trials.run_once(source, warm=warm).of("leg-ended")[0]["stderr"]
    assert text.startswith("Traceback (most recent call last):")
    assert "in charge" in text
    assert text.endswith("RuntimeError: the card is blue")


@BOTH
def test_an_exits_text_is_on_standard_error(trials: Trials, warm: bool) -> None:
    (ended,) = trials.run_once("raise SystemExit('refused: no such run')\n", warm=warm).of("leg-ended")
    assert ended["stderr"] == "refused: no such run"


@BOTH
def test_exit_functions_run(trials: Trials, warm: bool) -> None:
    source = """
        import atexit, plugpull
        atexit.register(plugpull.hello, second="yes")
        atexit.register(plugpull.hello, first="yes")
    """
    history = trials.run_once(source, warm=warm)
    assert [sorted(e.facts)[-1] for e in history.of("hello")] == ["said_first", "said_second"]


@BOTH
def test_threads_that_are_no_daemons_are_awaited(trials: Trials, warm: bool) -> None:
    source = """
        import threading, time, plugpull
        def work():
            time.sleep(0.2)
            plugpull.answer("from a thread")
        threading.Thread(target=work).start()
    """
    history = trials.run_once(source, warm=warm)
    assert [e["text"] for e in history.of("answer")] == ["from a thread"]
    assert exits(history) == [("exited", 0)]


@BOTH
def test_an_executors_work_is_awaited(trials: Trials, warm: bool) -> None:
    source = """
        import concurrent.futures, time, plugpull
        def work():
            time.sleep(0.2)
            plugpull.answer("from a pool")
        concurrent.futures.ThreadPoolExecutor().submit(work)
    """
    assert len(trials.run_once(source, warm=warm).of("answer")) == 1


@BOTH
def test_destructors_of_the_targets_objects_run(trials: Trials, warm: bool, tmp_path: Path) -> None:
    source = f"""
        import os
        out = os.open({str(tmp_path / "closed")!r}, os.O_WRONLY | os.O_CREAT)
        class Closes:
            def __init__(self, name):
                self.name = name
            def __del__(self, out=out, write=os.write):
                write(out, self.name)
        a = Closes(b"a")
        b = Closes(b"b")
        b.me = b
    """
    trials.run_once(source, warm=warm)
    assert sorted((tmp_path / "closed").read_text()) == ["a", "b"]


@BOTH
def test_an_open_files_buffer_is_written_at_the_end(trials: Trials, warm: bool, tmp_path: Path) -> None:
    trials.run_once(f"file = open({str(tmp_path / 'out')!r}, 'w')\nfile.write('kept')\n", warm=warm)
    assert (tmp_path / "out").read_text() == "kept"


@BOTH
def test_the_hash_of_a_text_does_not_survive_the_restart(trials: Trials, warm: bool) -> None:
    source = "import plugpull\nplugpull.hello(hash=hash('order-1'))\n"
    history = trials.run_twice(source, warm=warm)
    assert said(history, 0) != said(history, 1)


@BOTH
def test_random_numbers_do_not_survive_the_restart(trials: Trials, warm: bool) -> None:
    source = "import random, uuid, plugpull\nplugpull.hello(n=random.random(), u=str(uuid.uuid4()))\n"
    command = trials.target(source, warm=warm)
    if warm:
        command = replace(command, preload=("json", "random", "uuid", "http.client"))
    legs = [LegPlan(word, command) for word in ("start", "resume", "start")]
    history = trials.run(legs)
    assert len({str(said(history, leg)) for leg in range(3)}) == 3


def test_warm_legs_have_the_hash_seed_that_is_written(trials: Trials) -> None:
    history = trials.run_twice(CHARGES, warm=True)
    assert [e["hash_seed"] for e in history.of("leg-started")] == ["1", "2"]


@BOTH
def test_a_leg_sees_nothing_of_the_harnesss_environment(
    trials: Trials, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        import os, plugpull
        with open("/proc/self/environ", "rb") as file:
            plugpull.hello(all=sorted(os.environ), block=file.read().decode())
    """
    with monkeypatch.context() as patch, TrialPool(1, 600) as pool:
        patch.setenv("A_SECRET_OF_THE_HARNESS", "hunter2")
        facts = said(Trials(pool, trials.folder).run_once(source, warm=warm))
    assert "A_SECRET" not in facts["all"] + facts["block"]
    assert "hunter2" not in facts["block"]
    assert "PLUGPULL_PROVIDER" in facts["all"]
    assert "PYTEST" not in facts["all"] + facts["block"]


@BOTH
def test_a_legs_modules_are_not_the_harnesss(trials: Trials, warm: bool) -> None:
    source = """
        import sys, plugpull
        plugpull.hello(found=[name for name in sys.modules if name.split(".")[0] in ("harness", "arena", "aiohttp")])
        try:
            import forkserver
            plugpull.hello(forkserver="importable")
        except ImportError:
            pass
    """
    assert said(trials.run_once(source, warm=warm)) == {"found": "[]"}


@BOTH
def test_a_leg_has_no_descriptors_but_the_standard_three(trials: Trials, warm: bool) -> None:
    source = """
        import os
        found = sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + n))
        import plugpull
        plugpull.hello(found=found)
    """
    assert said(trials.run_once(source, warm=warm))["found"] == "[0, 1, 2]"


@BOTH
def test_a_leg_leads_its_own_session_and_group(trials: Trials, warm: bool) -> None:
    source = "import os, plugpull\nplugpull.hello(lead=os.getpid() == os.getpgid(0) == os.getsid(0))\n"
    assert said(trials.run_once(source, warm=warm))["lead"] == "True"


@BOTH
def test_a_leg_has_the_usual_signals(trials: Trials, warm: bool) -> None:
    source = """
        import signal, plugpull
        plugpull.hello(**{n: str(signal.getsignal(getattr(signal, n))) for n in ("SIGINT", "SIGTERM", "SIGPIPE", "SIGHUP")},
            blocked=len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    """
    facts = said(trials.run_once(source, warm=warm))
    assert "default_int_handler" in facts["SIGINT"]
    assert facts["SIGTERM"] == facts["SIGHUP"] == "0"
    assert facts["SIGPIPE"] == "1"
    assert facts["blocked"] == "0"


@BOTH
def test_a_leg_works_in_the_trials_folder(trials: Trials, warm: bool) -> None:
    source = """
        import os, sys, plugpull
        seen = os.path.exists("run.txt")
        open("run.txt", "w").write(sys.argv[1])
        plugpull.hello(here=os.getcwd() == os.environ["PLUGPULL_WORKDIR"], seen=seen, home=os.listdir(os.environ["HOME"]))
    """
    history = trials.run_twice(source, warm=warm)
    assert said(history, 0) == {"here": "True", "seen": "False", "home": "[]"}
    assert said(history, 1)["seen"] == "True"
    assert history.of("leg-ended", leg=0)[0]["state_bytes"] == len("start")


@BOTH
def test_a_module_level_value_does_not_survive_the_restart(trials: Trials, warm: bool) -> None:
    # `json` is preloaded: what the first leg writes into it must be gone in the second
    source = """
        import json, plugpull
        seen = getattr(json, "charged", False)
        json.charged = True
        plugpull.hello(seen=seen)
    """
    history = trials.run_twice(source, warm=warm)
    assert [said(history, leg)["seen"] for leg in (0, 1)] == ["False", "False"]


def test_a_warm_leg_is_warm_and_dies_like_any_other(trials: Trials) -> None:
    history = trials.run_twice(CHARGES, kill(f"{CHARGE}.after"), warm=True)
    assert start_kinds(history) == ["warm", "warm"]
    assert exits(history) == [("killed", 9), ("exited", 0)]


def test_a_trial_that_asks_for_cold_legs_gets_them(trials: Trials) -> None:
    assert start_kinds(trials.run_twice(CHARGES, warm=True, cold=True)) == ["cold", "cold"]


def test_a_pool_that_is_cold_starts_every_leg_cold(tmp_path: Path) -> None:
    with TrialPool(1, 600, cold=True) as pool:
        assert start_kinds(Trials(pool, tmp_path).run_twice(CHARGES, warm=True)) == ["cold", "cold"]


# --- where a fork would not be a fresh start ---


def preloading(trials: Trials, name: str, module: str, source: str = CHARGES) -> History:
    """Run a target whose fork server has imported a module that the test writes."""
    site = trials.folder / "packages"
    site.mkdir()
    (site / f"{name}.py").write_text(textwrap.dedent(module), encoding="utf-8")
    program = trials.folder / "python-with-packages"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={site}:$PYTHONPATH exec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    target = trials.target(source)
    command = replace(target, argv=(str(program), target.argv[1]), preload=("json", name))
    return trials.run([LegPlan("start", command), LegPlan("resume", command)])


def test_a_preloaded_module_is_there_in_a_warm_leg(trials: Trials) -> None:
    source = "import sys, plugpull\nplugpull.hello(there='heavy_module' in sys.modules)\n"
    history = preloading(trials, "heavy_module", "VALUE = 1\n", source)
    assert start_kinds(history) == ["warm", "warm"]
    assert said(history) == {"there": "True"}


def test_a_fork_server_with_a_thread_starts_cold_and_says_why(trials: Trials) -> None:
    module = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    history = preloading(trials, "starts_a_thread", module)
    assert start_kinds(history) == ["cold", "cold"]
    assert history.of("leg-started")[0]["why_cold"] == "2 threads run in the fork server"
    assert not errors(history)
    assert len(history.of("recorded")) == 2


def test_a_fork_server_with_an_unknown_descriptor_starts_cold_and_says_why(trials: Trials) -> None:
    # a client that is made on import: its connection would be shared by every leg
    module = "import socket\nconnection = socket.socketpair()\n"
    history = preloading(trials, "opens_a_socket", module)
    assert start_kinds(history) == ["cold", "cold"]
    assert "unknown descriptors" in history.of("leg-started")[0]["why_cold"]


def test_a_module_that_cannot_be_imported_does_not_keep_a_target_from_running(trials: Trials) -> None:
    history = preloading(trials, "raises", "raise RuntimeError('not today')\n")
    assert not errors(history)
    assert exits(history) == [("exited", 0), ("exited", 0)]


def test_a_program_that_is_not_there_is_an_error_that_names_it(trials: Trials) -> None:
    command = replace(trials.target(CHARGES), argv=("/no/such/program",), interpreter=None)
    history = trials.run([LegPlan("start", command)])
    text = " ".join([*errors(history), *(e.facts.get("stderr", "") for e in history.of("leg-ended"))])
    assert "/no/such/program" in text
    assert exits(history) in ([], [("exited", 127)])


def test_any_program_can_be_a_target(trials: Trials) -> None:
    command = replace(
        trials.target(CHARGES), argv=("/bin/sh", "-c", 'test "$1" = start', "x"), interpreter=None
    )
    assert exits(trials.run([LegPlan("start", command), LegPlan("resume", command)])) == [
        ("exited", 0),
        ("exited", 1),
    ]


# --- what gets into evidence ---


@BOTH
def test_standard_error_in_evidence_has_no_path_of_the_trial(trials: Trials, warm: bool) -> None:
    source = """
        import os, sys
        for name in ("PLUGPULL_WORKDIR", "PLUGPULL_PROVIDER", "HOME"):
            print(os.environ[name], file=sys.stderr)
        print(os.getcwd(), file=sys.stderr)
        raise SystemExit(1)
    """
    history = trials.run_once(source, warm=warm)
    text = history.of("leg-ended")[0]["stderr"]
    assert str(trials.pool.directory) not in text
    assert text.splitlines()[0] == "<workdir>"
    for event in history:
        assert str(trials.pool.directory) not in str(dict(event.facts))


def test_standard_error_is_cut_from_the_front(trials: Trials) -> None:
    source = """
        import sys
        for n in range(1000):
            print("line", n, "x" * 90, file=sys.stderr)
        sys.exit(1)
    """
    text = trials.run_once(source).of("leg-ended")[0]["stderr"]
    assert text.startswith("...(truncated)")
    assert "line 999" in text
    assert "line 900" not in text
    assert len(text) <= 4000 + len("...(truncated)")


def test_standard_error_of_a_good_end_is_not_kept(trials: Trials) -> None:
    (ended,) = trials.run_once("import sys\nprint('chatter', file=sys.stderr)\n").of("leg-ended")
    assert "stderr" not in ended.facts
