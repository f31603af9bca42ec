"""Scalars of hosts and summaries, read back with TensorBoard's own reader."""

import math

import numpy
import pytest
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import types_pb2
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.record_writer import RecordWriter

from orbax_bench_core.exports.tensorboard import hparams
from orbax_bench_core.measure import BYTES, TIME, Sample
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import series_of

GIB = 2**30
ERROR = ErrorInfo(type="ValueError", message="no room", traceback="Traceback:\n  line 1")
TIME_TAG = "save_0_basics/time_s"
RATE_TAG = "save_4_throughput/operation_gbps_mean"
ALL = {"median", "mean", "min", "max", "p50", "p99"}


def suffixes(events, metric):
    found = {tag.rpartition("_") for tag in events.tags("scalars")}
    return {suffix for head, _, suffix in found if head == f"save_{metric}"}


def test_the_file_is_what_tensorboards_own_writer_gives(write, make_record, tmp_path):
    [path] = write([make_record(times={"save": 0.5})]).glob("*/host_0/*")
    with (tmp_path / "own").open("wb") as file:
        for data in RawEventFileLoader(str(path)).Load():
            RecordWriter(file).write(Event.FromString(data).SerializeToString(deterministic=True))
    assert path.read_bytes() == (tmp_path / "own").read_bytes()


@pytest.mark.parametrize("value", [1e-6, 0.1, 98765.43, -math.inf, math.nan, 1e100])
def test_defect_22_values_are_floats_of_seven_digits(written, make_record, value):
    # TensorBoard's default loader leaves out scalars of any other type.
    record = make_record(samples=(Sample("save", 0, "own/thing", value, ""),))
    found = written([record], "host_0")
    [event] = found.reader.Tensors("save_own/thing")
    assert event.tensor_proto.dtype == types_pb2.DT_FLOAT
    with numpy.errstate(over="ignore"):
        expected = float(numpy.float32(value))
    assert found.value("save_own/thing") == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("status", "tag"), [("failed", "error"), ("skipped", "skipped")])
def test_a_repeat_that_did_not_pass_leaves_its_error_and_no_scalar(
    written, make_record, status, tag
):
    record = make_record(repeat=1, times={"save": 0.5}, status=status, error=ERROR)
    found = written([record], "host_0")
    [(step, text)] = found.texts(tag)
    assert step == 1
    assert "**ValueError**: no room" in text
    assert "  line 1" in text
    assert found.tags("scalars") == set()


def test_times_are_aggregated_over_hosts_and_repeats(written, make_record, make_point):
    point = make_point(processes=2)
    seconds = [[1.0, 5.0], [3.0, 2.0], [4.0, 1.5]]
    records = [
        make_record(point, repeat, host=host, num_hosts=2, times={"save": value})
        for repeat, of_hosts in enumerate(seconds)
        for host, value in enumerate(of_hosts)
    ]
    found = written(records)
    expected = {
        "median": 4.0,  # of the slowest host of each repeat
        "mean": numpy.mean(seconds),
        "min": 1.0,
        "max": 5.0,
        "p50": numpy.median(seconds),
        "p99": numpy.percentile(seconds, 99),
    }
    for suffix, value in expected.items():
        assert found.value(f"{TIME_TAG}_{suffix}") == pytest.approx(value)
    assert found.value("0_time/save_s") == 4.0


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [
        ("own/wait", "ms", ALL),
        ("2_save_breakdown/commit_s", "s", ALL),
        ("8_jax/cache_hit_rate", "ratio", ALL),
        ("7_memory/device_hbm_peak_diff_gb", "GiB", ALL),
        ("4_throughput/save_total_gbps", "GiB/s", ALL - {"mean"}),  # no mean of rates
        (BYTES, "bytes", {"median"}),
        ("own/thing", "", {"median"}),
    ],
)
def test_times_and_headline_metrics_have_all_aggregates(
    written, make_record, metric, unit, expected
):
    record = make_record(samples=(Sample("save", 0, metric, 1.0, unit),))
    assert suffixes(written([record]), metric) == expected


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (TIME, 5.0),  # lower is better
        ("4_throughput/save_total_gbps", 1.0),  # higher is better
        (BYTES, 3.0),  # neither
        ("own/thing", 3.0),  # which nobody registered
    ],
)
def test_the_median_is_of_the_worst_host(written, make_record, make_point, metric, expected):
    point = make_point(processes=2)
    records = [
        make_record(point, host=host, num_hosts=2, samples=(Sample("save", 0, metric, value, "s"),))
        for host, value in enumerate([1.0, 5.0])
    ]
    assert written(records).value(f"save_{metric}_median") == expected


def test_a_value_that_is_no_number_makes_the_median_one(written, make_record):
    samples = tuple(Sample("save", i, "own/wait", v, "s") for i, v in enumerate([1.0, math.nan]))
    found = written([make_record(samples=samples)])
    assert suffixes(found, "own/wait") == ALL
    assert math.isnan(found.value("save[1]_own/wait_median"))
    assert "save[1]_own/wait_mean" not in found.tags("scalars")


def test_defect_21_a_lost_host_is_left_out_and_said_to_be(written, make_record, make_point):
    point = make_point(processes=2)
    records = [
        make_record(point, repeat, host=host, num_hosts=2, times={"save": 1.0 + repeat})
        for repeat, host in ((0, 0), (0, 1), (1, 0))
    ]
    found = written(records)
    assert found.value(f"{TIME_TAG}_max") == 1.0
    [(_, text)] = found.texts("run_summary")
    assert "no record from host 1" in text


def test_defect_17_time_and_throughput_are_of_the_slowest_host(written, make_record, make_point):
    point = make_point(processes=2)
    records = [
        make_record(point, host=host, num_hosts=2, times={"save": time}, sizes={"save": GIB})
        for host, time in enumerate([1.0, 4.0])
    ]
    found = written(records)
    assert (found.value("0_time/save_s"), found.value(RATE_TAG)) == (4.0, 0.25)


@pytest.fixture
def rows(make_point):
    """The rows of points with these options."""

    def make(*options, **fields):
        points = [make_point(options=one, **fields) for one in options]
        return list(hparams.columns(map(series_of, points)).values())

    return make


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        *(([value], [value]) for value in (True, 3, 0.5, "text")),
        ([None, 3], [None, 3]),  # an empty cell
        ([[1, 2]], ["[1, 2]"]),
        (["auto", 3], ["auto", "3"]),  # a column has one type
        ([True, 1], ["true", "1"]),
        ([1, 0.5], [1, 0.5]),
    ],
)
def test_a_column_has_the_type_that_its_options_share(rows, values, expected):
    found = [row.get("option") for row in rows(*({"option": value} for value in values))]
    assert [(value, type(value)) for value in found] == [(each, type(each)) for each in expected]
