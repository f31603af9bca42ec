"""The summary of one point."""

import pytest

from orbax_bench_core.exports.tensorboard.operations import MetricSeries, Operation
from orbax_bench_core.exports.tensorboard.write import metric_columns
from orbax_bench_core.inventory import Inventory
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import ErrorInfo

GIB = 2**30
ERROR = ErrorInfo(type="ValueError", message="no")


def operation(name, num_bytes=()):
    time = MetricSeries(operation=name, metric=TIME, unit="s", repeats=[{0: 1.0}])
    return Operation(name=name, time=time, num_bytes=num_bytes, costs={})


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [("median", 2.0), ("mean", 3.0), ("min", 1.0), ("max", 6.0), ("p50", 2.0), ("p99", 5.92)],
)
def test_every_aggregate_is_a_scalar(written, make_record, suffix, expected):
    records = [
        make_record(repeat=repeat, times={"save": seconds})
        for repeat, seconds in enumerate([1.0, 2.0, 6.0])
    ]
    assert written(records).value(f"save_0_basics/time_s_{suffix}") == pytest.approx(expected)


def test_throughput_is_all_bytes_over_all_seconds(written, make_record):
    records = [
        make_record(
            repeat=repeat,
            times={"save": seconds},
            sizes={"save": GIB},
        )
        for repeat, seconds in enumerate([1.0, 3.0])
    ]
    assert written(records).value("save_4_throughput/operation_gbps_mean") == 0.5


def test_no_rate_has_a_mean_of_rates(written, make_record):
    samples = (Sample("save", 0, "4_throughput/save_total_gbps", 1.0, "GiB/s"),)
    tags = written([make_record(samples=samples)]).tags("scalars")
    assert "save_4_throughput/save_total_gbps_mean" not in tags
    assert "save_4_throughput/save_total_gbps_median" in tags


def test_defect_21_a_lost_host_is_left_out_and_said_to_be(written, make_record, make_point):
    point = make_point(processes=2)
    records = [
        make_record(point, repeat, host=host, num_hosts=2, times={"save": 1.0 + repeat})
        for repeat, host in ((0, 0), (0, 1), (1, 0))
    ]
    found = written(records)
    assert found.value("save_0_basics/time_s_max") == 1.0
    [(_, text)] = found.texts("run_summary")
    assert "no record from host 1" in text


def test_the_cards_are_there(written, make_record):
    record = make_record(
        times={"save": 1.0, "load": 1.0},
        inventory=Inventory(total_bytes=1, file_count=1, largest_bytes=1),
    )
    assert written([record]).tags("text") == {
        "configuration",
        "run_summary",
        "inventory",
        "at_a_glance/save",
        "at_a_glance/load",
    }


def test_a_point_that_only_failed_has_its_cards_too(written, make_record):
    record = make_record(status="failed", error=ERROR)
    assert written([record]).tags("text") == {"configuration", "run_summary"}


def test_operations_that_move_bytes_come_first_among_the_columns():
    found = [operation("save_blocking"), operation("save", [GIB]), operation("load", [GIB])]
    titles = [column.title for column in metric_columns(found)]
    assert titles == ["save [s]", "save [GiB/s]", "load [s]", "load [GiB/s]", "save_blocking [s]"]


def test_points_share_the_columns_of_an_operation():
    found = [operation("save"), operation("save", [GIB])]
    titles = [column.title for column in metric_columns(found)]
    assert titles == ["save [s]", "save [GiB/s]"]
