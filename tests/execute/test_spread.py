"""Which worker processes measure the rounds of a sweep."""

import pytest

NEVER = "99"


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


@pytest.mark.parametrize(
    "given", [{"order": "sequential"}, {"rounds_per_process": 7}], ids=["sequential", "one process"]
)
def test_a_suite_may_have_all_rounds_in_one_process(orchestrate, given):
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.run(repeats=5, **given)
    assert len({worker for point in workers(run, 5) for worker in point}) == 1


def test_a_single_point_keeps_its_worker(orchestrate):
    run = orchestrate("behave")
    run.run(repeats=5)
    assert len(set(*workers(run, 5, acts=("behave",)))) == 1


def test_an_interrupted_run_goes_on_with_new_workers(orchestrate):
    run = orchestrate("behave", "raise", act_at=NEVER)
    run.run(repeats=2)
    run.run(repeats=4)
    assert len({*workers(run, 4)[0]}) == 4
