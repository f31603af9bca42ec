"""Training that is killed at a drawn step, with fake workers."""

from pathlib import Path

import pytest

from orbax_bench_core.config import UserError
from orbax_bench_core.execute import LocalHost
from orbax_bench_core.execute.drill import Strike
from orbax_bench_core.measure import PEERS_NOTICE, STEPS_LOST, TIME


def values(record, metric=TIME):
    return {one.operation: one.value for one in record.samples if one.metric == metric}


@pytest.mark.slow
def test_a_repeat_is_killed_and_goes_on_from_its_last_save(orchestrate):
    run = orchestrate("behave")
    run.run(repeats=2, drill=True)
    for repeat in range(2):
        record = run.record("behave", repeat)
        assert record.status == "passed"
        seconds = values(record)
        assert seconds["notice"] > 0 < seconds["start"]
        assert values(record, STEPS_LOST.name)["recovery"] >= 0
        assert "step" not in seconds
    assert len(run.processes("behave", 2)) == 2


def test_the_step_is_drawn_between_two_saves_and_is_the_same_for_one_seed(make_point):
    options = {"save_interval_steps": 10, "kill": "all", "peers_wait_s": 2}
    point = make_point(options=options)
    steps = {Strike.of(point, str(seed)).step for seed in range(200)}
    assert steps == set(range(21, 31))
    assert Strike.of(point, "7") == Strike.of(point, "7")
    assert Strike.of(point, "7").kills == "all"


def test_what_does_not_train_is_refused(make_point):
    with pytest.raises(UserError, match=r"has no option 'save_interval_steps'.*training_job"):
        Strike.of(make_point(), "0")


def test_no_host_is_killed_where_there_is_only_that_of_the_drill(make_point):
    point = make_point(options={"save_interval_steps": 10, "kill": "host", "peers_wait_s": 0})
    with pytest.raises(UserError, match="start the command on several hosts"):
        Strike.of(point, "0").check(point, LocalHost())


@pytest.mark.slow
def test_training_that_ends_before_it_was_killed_fails(orchestrate):
    run = orchestrate("behave", trains=3)
    run.run(drill=True)
    assert run.record("behave").error.type == "NotKilled"


@pytest.mark.slow
def test_of_two_processes_the_last_is_killed_and_the_other_may_notice(orchestrate):
    run = orchestrate("behave", processes=2, peers_wait_s=0.3)
    run.run(drill=True)
    assert run.record("behave", host=1).status == "passed"
    assert PEERS_NOTICE.name not in {one.metric for one in run.record("behave").samples}


@pytest.fixture
def store(tmp_path):
    """Options of a store that is away while a file is there."""
    away = tmp_path / "away"
    return {"store_down": f"touch {away}", "store_up": f"rm {away}", "away": str(away)}


@pytest.mark.slow
def test_a_job_whose_store_goes_notices_at_its_next_save_and_goes_on_when_it_is_back(
    orchestrate, store
):
    run = orchestrate("behave", kill="store", **store)
    run.run(drill=True)
    record = run.record("behave")
    assert record.status == "passed"
    assert values(record)["notice"] > 0
    assert values(record, STEPS_LOST.name)["recovery"] >= 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        ({"away": "", "outage_s": 0.1}, "NotNoticed", "did not notice"),
        ({"store_down": "exit 3"}, "StoreNotTaken", "store_down: 'exit 3' ended with 3"),
        ({"kill": "store_at_restore", "outage_s": 60}, "OSError", "the store is gone"),
    ],
)
def test_a_store_that_is_not_noticed_not_taken_or_not_back_is_told(
    orchestrate, store, changes, kind, said
):
    run = orchestrate("behave", **{"kill": "store", **store, **changes})
    run.run(drill=True)
    error = run.record("behave").error
    assert error.type == kind
    assert said in error.message
    if store["away"] == changes.get("away", store["away"]):
        assert not Path(store["away"]).exists()


def test_a_store_is_taken_by_commands(make_point):
    point = make_point(options={"save_interval_steps": 5, "kill": "store", "peers_wait_s": 0})
    with pytest.raises(UserError, match="needs store_down and store_up"):
        Strike.of(point, "0")
