"""Training that is killed at a drawn step, with fake workers."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LocalHost
from orbax_bench_core.execute.drill import Kill
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
    steps = {Kill.of(point, str(seed)).step for seed in range(200)}
    assert steps == set(range(21, 31))
    assert Kill.of(point, "7") == Kill.of(point, "7")
    assert Kill.of(point, "7").kills == "all"


def test_what_does_not_train_is_refused(make_point):
    with pytest.raises(UserError, match=r"has no option 'save_interval_steps'.*training_job"):
        Kill.of(make_point(), "0")


def test_no_host_is_killed_where_there_is_only_that_of_the_drill(make_point):
    point = make_point(options={"save_interval_steps": 10, "kill": "host", "peers_wait_s": 0})
    with pytest.raises(UserError, match="start the command on several hosts"):
        Kill.of(point, "0").check(point, LocalHost())


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
