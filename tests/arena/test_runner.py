"""The runner: which trials are run, repeated and replaced, with an executor that runs nothing."""

import concurrent.futures
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from arena.adapters import load_adapter
from arena.cells import Shot, Wanted, select
from arena.journal import Journal, Record, read_journal
from arena.runner import CeilingReached, record_of, run_shots
from arena.scenario import find_scenarios
from arena.targets import Target, prepare
from arena.verdicts import FRESH
from harness.history import History
from harness.plan import TrialPlan
from tests.histories import Story, finishing, killed_after, killed_before

ROOT = Path(__file__).resolve().parents[2]
CONTROLS = load_adapter(ROOT / "adapters" / "controls")
VERSION = CONTROLS.versions[0].version

PASSES = finishing(killed_before("k"), key="k").close()
FAILS = finishing(killed_after("k"), key="another").close()
BREAKS = killed_before("k").add("error", reason="a fact is missing").close()


def shots_of(scenario: str = "kill-mid-tool", *points: str, mode: str = "outbox") -> tuple[Shot, ...]:
    wanted = Wanted(("controls",), (scenario,), (mode,), points)
    return select(wanted, {"controls": CONTROLS}, find_scenarios())


class Script:
    """An executor that answers each plan from a script, at once."""

    def __init__(self, history_of: Callable[[int], History]) -> None:
        self.plans: list[TrialPlan] = []
        self._history_of = history_of

    def submit(self, plan: TrialPlan, /) -> concurrent.futures.Future[History]:
        future: concurrent.futures.Future[History] = concurrent.futures.Future()
        self.plans.append(plan)
        future.set_result(self._history_of(len(self.plans) - 1))
        return future


class Workers(Script):
    """An executor with threads: trials finish in an order of their own. It counts how many are under way."""

    def __init__(self, history_of: Callable[[int], History], threads: int) -> None:
        super().__init__(history_of)
        self._threads = concurrent.futures.ThreadPoolExecutor(threads)
        self._lock = threading.Lock()
        self._under_way = 0
        self.most_under_way = 0

    def submit(self, plan: TrialPlan, /) -> concurrent.futures.Future[History]:
        number = len(self.plans)
        self.plans.append(plan)
        with self._lock:
            self._under_way += 1
            self.most_under_way = max(self.most_under_way, self._under_way)
        return self._threads.submit(self._work, number)

    def _work(self, number: int) -> History:
        time.sleep(number % 3 / 1000)
        with self._lock:
            self._under_way -= 1
        return self._history_of(number)


class Silent:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.totals: list[int] = []
        self.finished_trials = 0

    def planned(self, total: int) -> None:
        self.totals.append(total)

    def finished(self, shot: Shot, record: Record) -> None:
        del shot, record
        self.finished_trials += 1


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Target]:
    return {("controls", VERSION): prepare(CONTROLS, VERSION, tmp_path_factory.mktemp("build"))}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal.begin(tmp_path / "run.jsonl", {"id": "test"})
    yield made
    made.close()


Run = Callable[..., dict[str, list[Record]]]


@pytest.fixture
def run(targets: dict[tuple[str, str], Target], journal: Journal) -> Run:
    def run(shots: tuple[Shot, ...], script: Script, **options: object) -> dict[str, list[Record]]:
        settings = {"trials": 5, "jobs": 1, "leg_limit_s": 60.0, **options}
        return run_shots(shots, targets, script, journal, Silent(), **settings)  # type: ignore[arg-type]

    return run


def only(records: dict[str, list[Record]]) -> list[Record]:
    (found,) = records.values()
    return found


ONE = shots_of("kill-mid-tool", "after-effect@rest")


def test_trials_that_agree_are_run_as_often_as_planned(run: Run) -> None:
    script = Script(lambda _: PASSES)
    records = only(run(ONE, script))
    assert len(script.plans) == 5
    assert sorted(r.number for r in records) == list(range(5))
    assert {r.round for r in records} == {1}


def test_no_two_trials_have_one_id(run: Run) -> None:
    script = Script(lambda _: PASSES)
    run(shots_of(), script)
    assert len({plan.id for plan in script.plans}) == len(script.plans) == 4 * 5


def test_every_item_of_a_scenario_is_run_equally_often(run: Run) -> None:
    shots = shots_of("durable-state")[:1]
    script = Script(lambda _: PASSES)
    items = Counter(r.item for r in only(run(shots, script, trials=9)))
    assert items == dict.fromkeys(range(8), 2)


def test_trials_that_differ_are_followed_by_fresh_ones(run: Run) -> None:
    script = Script(lambda n: FAILS if n == 2 else PASSES)
    records = only(run(ONE, script))
    assert Counter(r.round for r in records) == {1: 5, 2: FRESH}
    assert sorted(r.number for r in records) == list(range(5 + FRESH))


def test_trials_that_differ_in_anomalies_only_are_followed_by_fresh_ones(run: Run) -> None:
    lost = finishing(killed_before("k"), charge_again=False, key="k").close()
    script = Script(lambda n: FAILS if n % 2 else lost)
    assert Counter(r.round for r in only(run(ONE, script))) == {1: 5, 2: FRESH}


def test_differing_only_with_a_key_is_differing(run: Run) -> None:
    same_key = finishing(killed_after("k"), key="k").close()
    script = Script(lambda n: same_key if n == 0 else FAILS)
    assert Counter(r.round for r in only(run(ONE, script))) == {1: 5, 2: FRESH}


def test_fresh_trials_that_differ_do_not_ask_for_more(run: Run) -> None:
    script = Script(lambda n: FAILS if n % 3 == 0 else PASSES)
    assert len(only(run(ONE, script))) == 5 + FRESH


@pytest.mark.parametrize(("errors", "trials"), [(1, 6), (2, 7), (3, 7), (9, 7)])
def test_at_most_two_errors_are_replaced(run: Run, errors: int, trials: int) -> None:
    script = Script(lambda n: BREAKS if n < errors else PASSES)
    records = only(run(ONE, script))
    assert len(records) == trials
    assert sum(r.is_error for r in records) == min(errors, trials)


def test_an_error_is_not_a_difference(run: Run) -> None:
    script = Script(lambda n: BREAKS if n == 0 else PASSES)
    assert {r.round for r in only(run(ONE, script))} == {1}


def test_a_replacement_runs_the_item_that_is_missing(run: Run) -> None:
    shots = shots_of("durable-state")[:1]
    script = Script(lambda n: BREAKS if n == 3 else PASSES)
    records = only(run(shots, script, trials=8))
    good = Counter(r.item for r in records if not r.is_error)
    assert set(good) == set(range(8))


def test_an_error_in_the_fresh_trials_is_replaced(run: Run) -> None:
    script = Script(lambda n: BREAKS if n == 50 else FAILS if n == 0 else PASSES)
    records = only(run(ONE, script))
    assert sum(r.round == 2 and not r.is_error for r in records) == FRESH


def test_a_cell_that_ever_differed_starts_with_fresh_trials(run: Run) -> None:
    script = Script(lambda _: PASSES)
    records = only(run(ONE, script, ever_differed=frozenset((ONE[0].id,))))
    assert Counter(r.round for r in records) == {2: FRESH}


def test_trials_may_finish_in_any_order(run: Run) -> None:
    script = Workers(lambda n: FAILS if n == 0 else PASSES, 3)
    records = only(run(ONE, script, jobs=3))
    assert sorted(r.number for r in records) == list(range(5 + FRESH))


def test_a_shot_that_is_not_supported_is_not_run(run: Run) -> None:
    script = Script(lambda _: PASSES)
    shot = ONE[0]
    entry = {
        "capability": None,
        "reason": "it cannot",
        "url": "https://example.org",
        "checked": "2026-11-30",
        "modes": ("outbox",),
    }
    adapter = CONTROLS.model_validate({**CONTROLS.model_dump(), "unsupported": (entry,)})
    lacking = Shot(adapter, VERSION, "outbox", shot.scenario, shot.case, shot.timing)
    assert run((lacking,), script) == {lacking.id: []}
    assert not script.plans


def test_what_is_done_is_not_run_again(run: Run) -> None:
    done = [record_of(ONE[0], n, 1, 0, PASSES) for n in (0, 1, 3)]
    script = Script(lambda _: PASSES)
    records = only(run(ONE, script, done=done))
    assert len(script.plans) == 2
    assert sorted(r.number for r in records) == list(range(5))


def test_a_difference_before_and_after_the_break_is_seen(run: Run) -> None:
    done = [record_of(ONE[0], n, 1, 0, PASSES) for n in range(4)]
    records = only(run(ONE, Script(lambda n: FAILS if n == 0 else PASSES), done=done))
    assert Counter(r.round for r in records) == {1: 5, 2: FRESH}


def test_the_ceiling_ends_the_run_and_its_trial_is_not_kept(
    run: Run, journal: Journal, tmp_path: Path
) -> None:
    cut = Story().start().add("limit", which="ceiling", seconds=9.0, limit_s=60).end(9, how="killed")
    history = cut.add("error", reason="the run's ceiling cut this trial").close()
    with pytest.raises(CeilingReached):
        run(ONE, Script(lambda n: history if n == 3 else PASSES))
    journal.close()
    _, records, complete = read_journal(tmp_path / "run.jsonl")
    assert {r.number for r in records} <= {0, 1, 2, 4}
    assert not complete


def test_the_journal_holds_every_trial(run: Run, journal: Journal, tmp_path: Path) -> None:
    records = only(run(ONE, Script(lambda n: FAILS if n == 1 else PASSES)))
    journal.close()
    _, read, _ = read_journal(tmp_path / "run.jsonl")
    assert list(read) == records


def test_each_outcome_keeps_one_full_history(run: Run) -> None:
    records = only(run(ONE, Script(lambda n: FAILS if n in (1, 2) else PASSES)))
    kept = [r for r in records if r.history is not None]
    assert Counter(r.outcome for r in kept) == dict.fromkeys({r.outcome for r in records}, 1)


def test_a_record_holds_what_was_judged(run: Run) -> None:
    record = only(run(ONE, Script(lambda _: FAILS)))[0]
    assert record.judged["none"].verdict == record.judged["with"].verdict == "FAIL"
    assert record.judged["none"].anomalies == ("duplicated",)
    assert record.exits == ("killed 9", "exited 0")
    assert record.key_kind == "call-id"
    assert record.digest == FAILS.digest()
    assert sum(n > 1 for n in record.judged["with"].counts.values()) == 1


def test_a_leg_at_its_limit_is_shown_in_its_exit() -> None:
    story = killed_before("k").resume().add("limit", which="leg", seconds=3.0, limit_s=3)
    record = record_of(ONE[0], 0, 1, 0, story.end(9, how="killed").close())
    assert record.exits == ("killed 9", "killed 9 at its limit")


def test_no_more_is_submitted_than_keeps_the_executor_busy(
    targets: dict[tuple[str, str], Target], journal: Journal
) -> None:
    script = Workers(lambda _: PASSES, 2)
    run_shots(ONE, targets, script, journal, Silent(), trials=40, jobs=2, leg_limit_s=60.0)
    assert len(script.plans) == 40
    assert script.most_under_way <= 4


def test_a_plan_carries_the_modes_own_limit(run: Run) -> None:
    script = Script(lambda _: PASSES)
    run(shots_of("kill-mid-tool", "after-effect@rest", mode="hang"), script, leg_limit_s=60.0)
    assert {plan.leg_limit_s for plan in script.plans} == {CONTROLS.modes["hang"].leg_limit_s}


def test_progress_counts_every_trial(targets: dict[tuple[str, str], Target], journal: Journal) -> None:
    watcher = Silent()
    script = Script(lambda n: FAILS if n == 0 else PASSES)
    run_shots(ONE, targets, script, journal, watcher, trials=5, jobs=1, leg_limit_s=60.0)
    assert watcher.finished_trials == watcher.totals[-1] == 5 + FRESH
