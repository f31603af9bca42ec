"""By how much past runs differed: which runs count, and in which order."""

import math

import pytest

from orbax_bench_core.baselines.capturing import capture_run
from orbax_bench_core.baselines.find import past_log_ratios
from orbax_bench_core.baselines.stored import measured_records
from orbax_bench_core.records import Run


@pytest.fixture
def capture_all(registry):
    """Captures runs, and returns what the past of the last one is for the point's saves."""

    def capture(runs, candidate, arm="candidate"):
        for run in runs:
            capture_run(run, registry)
        found = past_log_ratios(registry, measured_records(Run(candidate).records(), arm))
        return next(iter(found.values()), ())

    return capture


def test_each_run_is_held_against_the_one_before_it(capture_all, make_separate_run):
    runs = [make_separate_run(day, 2.0**day, sigma=0) for day in range(4)]
    found = capture_all(runs, make_separate_run(9))
    assert found == pytest.approx([math.log(2)] * 3)


def test_runs_count_in_the_order_of_measurement(capture_all, make_separate_run):
    runs = [make_separate_run(day, 2.0**day, sigma=0) for day in (2, 0, 1)]
    found = capture_all(runs, make_separate_run(9))
    assert found == pytest.approx([math.log(2)] * 2)


def test_the_run_that_is_judged_is_not_its_own_past(capture_all, make_separate_run):
    runs = [make_separate_run(day, sigma=0) for day in range(3)]
    assert len(capture_all(runs, runs[-1])) == 1


def test_a_run_that_was_captured_twice_counts_once(capture_all, make_separate_run):
    runs = [make_separate_run(day, sigma=0) for day in (0, 1)]
    assert len(capture_all([*runs, *runs], make_separate_run(9))) == 1


def test_both_arms_of_one_run_are_one_run(registry, make_paired_run):
    run = make_paired_run(0)
    for arm in ("baseline", "candidate"):
        capture_run(run, registry, arm=arm)
    past = past_log_ratios(
        registry, measured_records(Run(make_paired_run(1)).records(), "candidate")
    )
    assert set(past.values()) == {()}


def test_what_was_measured_on_another_machine_does_not_count(capture_all, make_separate_run):
    other = {"host": {"cpu": "Xeon", "cpu_count": 2}}
    runs = [make_separate_run(day, provenance=other if day == 1 else None) for day in range(4)]
    assert len(capture_all(runs, make_separate_run(9))) == 2


def test_other_points_have_no_past_here(capture_all, make_separate_run, make_point):
    runs = [make_separate_run(day) for day in range(3)]
    assert capture_all(runs, make_separate_run(9, point=make_point(options={"a": 1}))) == ()
