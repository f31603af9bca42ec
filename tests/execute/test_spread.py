"""Which worker processes measure the rounds of a sweep."""

import pytest

from orbax_bench_core.config import Conditions
from tests.support.launches import Launches, starts

NEVER = "99"


@pytest.fixture(autouse=True)
def free(monkeypatch):
    """Sets how much memory is free, in GiB: much, unless a test says otherwise."""

    def set_free(gib):
        monkeypatch.setattr("orbax_bench_core.execute.pool.free_memory_bytes", lambda: gib << 30)

    set_free(64)
    return set_free


def workers(run, repeats, acts=("behave", "raise")):
    """Returns the process that made each repeat, one list for each point."""
    return [[run.record(act, repeat).worker for repeat in range(repeats)] for act in acts]


def test_new_workers_measure_the_rounds_of_points_to_choose_among(orchestrate):
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.run(repeats=7)
    first, second = workers(run, 7)
    assert first == second
    assert len({*first}) == 6
    assert first[4] == first[5]


def test_an_interrupted_run_goes_on_with_new_workers(orchestrate):
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.run(repeats=2)
    run.run(repeats=4)
    assert len({*workers(run, 4)[0]}) == 4


@pytest.mark.parametrize(
    ("gib", "at_once"),
    [(64, [1, 4, 2]), (9, [1, 3, 3]), (1, [1] * 7)],
    ids=["free", "short", "scarce"],
)
def test_workers_of_rounds_to_come_start_at_once_if_memory_is_free(orchestrate, free, gib, at_once):
    free(gib)
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.run(repeats=9, host=Launches(run.watched))
    first, second = workers(run, 9)
    assert (first == second, len({*first})) == (True, 7)
    assert starts(run.watched) == at_once


def test_workers_of_two_placements_leave_each_other_room(orchestrate):
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.points[1] = run.points[1].model_copy(update={"conditions": Conditions(host_memory="fresh")})
    run.run(repeats=4, host=Launches(run.watched))
    assert [len({*each}) for each in workers(run, 4)] == [4, 4]
    assert sum(starts(run.watched)) == 8


def test_a_worker_that_dies_before_its_round_is_replaced(orchestrate):
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.run(repeats=4, host=Launches(run.watched, failing=3))
    assert [len({*each}) for each in workers(run, 4)] == [4, 4]
    assert sum(starts(run.watched)) == 5
