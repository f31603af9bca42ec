"""Metrics of both arms: every one with its medians and delta, in every view."""

import pytest

from orbax_bench_core import pages
from orbax_bench_core.analysis.verdicts import (
    compare_stored,
    compare_unpaired,
    verdicts_document,
)
from orbax_bench_core.analysis.verdicts.metrics import compare_metrics
from orbax_bench_core.config import GateConfig
from orbax_bench_core.records import repeats_of
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    BYTES,
    HITS,
    RATE,
    arms,
    make_paired_run,
    make_separate_run,
    sample,
)

PEAK = "7_memory/host_peak_rss_mb"
QUEUE = "6_tensorstore/thread_pool_queue_s"
TIME = "0_basics/time_s"
LONG = "2_save_breakdown/background_directory_creation_s"


@pytest.fixture
def compared(make_record):
    """Compares two arms, each given as one list of samples per repeat."""

    def compare(before, now):
        arms = (
            repeats_of(
                [
                    make_record(repeat=repeat, samples=tuple(samples))
                    for repeat, samples in enumerate(arm)
                ]
            )
            for arm in (before, now)
        )
        return {(each.operation, each.metric): each for each in compare_metrics(*arms)}

    return compare


@pytest.fixture
def run_of(make_record):
    """Makes the records of a run of one point, whose values are `factor` times as high."""

    def make(factor, point=None):
        samples = (
            sample(HITS, factor**5, "count", operation="save_background"),
            sample(TIME, 2 * factor, "s", operation="save_background"),
            sample(HITS, factor**5, "count"),
            sample(PEAK, 300 / 1024 * (1 + (factor > 1)), "MiB"),
            sample(QUEUE, 1e-6 if factor == 1 else 2e-3, "s"),
            sample(LONG, 3 * factor, "s"),
            sample(TIME, 4 * factor, "s"),
        )
        return [make_record(point, repeat, samples=samples) for repeat in range(3)]

    return make


@pytest.fixture
def two_runs(run_of):
    """Two runs of one point, of which the second is slower in all."""
    return compare_unpaired(run_of(1.0), run_of(3.0), GateConfig())


def test_each_metric_has_both_medians_and_the_delta(compared):
    before = [[sample(BYTES, value, "bytes")] for value in (1, 2, 30)]
    now = [[sample(BYTES, value, "bytes")] for value in (3, 3, 3)]
    found = compared(before, now)["save", BYTES]
    assert (found.baseline, found.candidate, found.delta) == (2, 3, 0.5)
    assert (found.unit, found.repeats) == ("bytes", {"baseline": 3, "candidate": 3})
    assert found.apart == pytest.approx(1 / 3)


def test_its_direction_is_that_of_the_registry(compared):
    arm = [[sample(RATE, 1.0, "GiB/s"), sample(PEAK, 1.0, "MiB"), sample(HITS, 1.0)]]
    found = compared(arm, arm)
    assert [found["save", name].better for name in (RATE, PEAK)] == ["higher", "lower"]


def test_the_worst_host_counts(make_record):
    def arm(low, high):
        return repeats_of(
            make_record(host=host, num_hosts=2, samples=(sample(name, value),))
            for name in (RATE,)
            for host, value in enumerate((low, high))
        )

    [found] = compare_metrics(arm(1.0, 4.0), arm(2.0, 4.0))
    assert (found.baseline, found.candidate) == (1.0, 2.0)


def test_what_is_not_finite_is_left_out(compared):
    found = compared([[sample(HITS, float("nan"))], [sample(HITS, 1.0)]], [[sample(HITS, 1.0)]])
    assert found["save", HITS].repeats["baseline"] == 1


def test_an_unpaired_verdict_has_them(make_separate_run):
    runs = [make_separate_run(day, day, folder=f"run{day}") for day in (1, 2)]
    report = compare_stored(*(str(run.root) for run in runs))
    [found] = report.points[0].metrics
    assert found.delta == pytest.approx(1.0, abs=0.1)


def shown(report):
    return pages.to_markdown(verdicts_document(report, "out")).replace("\\", "")


def test_a_page_has_those_that_differ_most_with_both_medians_and_the_change(arms):
    page = shown(compare_stored(str(arms.root), None))
    for word in (BYTES, RATE, "+100 %", "-50 %", "No test was made of a change"):
        assert word in page


def test_times_of_operations_that_decide_come_before_all_else(two_runs):
    names = (PEAK, QUEUE, LONG, HITS, TIME)
    lines = shown(two_runs).splitlines()
    assert [name for line in lines for name in names if f"{name}`" in line] == [
        *(TIME, LONG, QUEUE, HITS, PEAK),
        *(TIME, HITS),
    ]
