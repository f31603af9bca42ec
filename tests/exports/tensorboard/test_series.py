"""Aggregates over hosts and repeats."""

import math

import numpy
import pytest

from orbax_bench_core.exports.tensorboard.operations import MetricSeries, collect
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over

ERROR = ErrorInfo(type="ValueError", message="no")


def series(*repeats, metric=TIME, unit="s"):
    return MetricSeries(operation="save", metric=metric, unit=unit, repeats=repeats)


@pytest.fixture
def make_repeat(make_record, make_point):
    """Builds one repeat in which each host took the seconds given for it."""
    point = make_point(processes=2)

    def make(*seconds, repeat=0, num_hosts=2, **fields):
        records = {
            host: make_record(
                point, repeat, times={"save": time}, host=host, num_hosts=num_hosts, **fields
            )
            for host, time in enumerate(seconds)
        }
        return repeat_over(records, num_hosts)

    return make


def test_the_tag_is_the_guides():
    assert series({0: 1.0}).tag == "save_0_basics/time_s"


def test_the_median_is_over_repeats_of_the_slowest_host():
    found = series({0: 1.0, 1: 5.0}, {0: 3.0, 1: 2.0}, {0: 4.0, 1: 1.0}).aggregates()
    assert found["median"] == 4.0


def test_where_higher_is_better_the_worst_host_is_the_lowest():
    found = series({0: 1.0, 1: 5.0}, metric="4_throughput/operation_gbps", unit="GiB/s")
    assert found.over_hosts == [1.0]


def test_where_neither_is_better_hosts_are_averaged():
    found = series({0: 1.0, 1: 5.0}, metric="5_inventory/operation_bytes", unit="bytes")
    assert found.over_hosts == [3.0]


def test_a_metric_that_nobody_registered_is_averaged_too():
    assert series({0: 1.0, 1: 5.0}, metric="own/thing").over_hosts == [3.0]


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("mean", numpy.mean),
        ("min", numpy.min),
        ("max", numpy.max),
        ("p50", numpy.median),
        ("p99", lambda values: numpy.percentile(values, 99)),
    ],
)
def test_the_others_are_over_all_repeats_and_hosts(suffix, expected):
    found = series({0: 1.0, 1: 5.0}, {0: 3.0, 1: 2.5}).aggregates()
    assert found[suffix] == pytest.approx(expected([1.0, 5.0, 3.0, 2.5]))


def test_a_rate_has_no_mean():
    found = series({0: 1.0}, {0: 3.0}, metric="4_throughput/operation_gbps", unit="GiB/s")
    assert set(found.aggregates()) == {"median", "min", "max", "p50", "p99"}


def test_a_value_that_is_no_number_makes_the_aggregate_one():
    assert math.isnan(series({0: 1.0}, {0: math.nan}).aggregates()["median"])


def test_values_of_one_host_leave_out_repeats_without_it():
    assert series({0: 1.0, 1: 5.0}, {0: 3.0}).of_host(1) == [5.0]


def test_repeats_and_hosts_are_kept_apart(make_repeat):
    found = collect([make_repeat(1.0, 2.0), make_repeat(3.0, 4.0, repeat=1)])
    assert found["save", TIME].repeats == [{0: 1.0, 1: 2.0}, {0: 3.0, 1: 4.0}]


def test_defect_21_a_repeat_that_lacks_a_host_never_counts(make_repeat):
    assert collect([make_repeat(1.0)]) == {}


def test_defect_21_a_repeat_with_a_host_too_many_never_counts(make_repeat):
    assert collect([make_repeat(1.0, 1.0, 99.0)]) == {}


def test_a_repeat_that_failed_never_counts(make_repeat):
    assert collect([make_repeat(1.0, 1.0, status="failed", error=ERROR)]) == {}


def test_every_occurrence_of_a_name_is_a_series_of_its_own(make_record):
    samples = (Sample("save", 0, TIME, 1.0, "s"), Sample("save", 1, TIME, 2.0, "s"))
    found = collect([repeat_over({0: make_record(samples=samples)}, 1)])
    assert [one.tag for one in found.values()] == [
        "save_0_basics/time_s",
        "save[1]_0_basics/time_s",
    ]
