"""Aggregates of a run per point, operation and metric."""

import csv
import io
import random
import statistics

import pytest

from orbax_bench_core.analysis.summary.aggregate import RESIDENT, SummaryTable, summarize
from orbax_bench_core.analysis.summary.hosts import HostFinder, stragglers_of
from orbax_bench_core.analysis.summary.model import MetricSummary
from orbax_bench_core.config import Conditions
from orbax_bench_core.measure import BYTES, TIME, Sample
from orbax_bench_core.records import PEER_FAILED, ErrorInfo, repeats_of

ERROR = ErrorInfo(type="ValueError", message="first")
GIB = 2**30


@pytest.fixture
def repeats(make_record):
    """Records of one point with the given save times."""
    return lambda *times, **fields: [
        make_record(repeat=repeat, times={"save": time}, **fields)
        for repeat, time in enumerate(times)
    ]


def test_throughput_is_all_bytes_over_all_seconds(make_record):
    # 1 GiB in 1 s and 1 GiB in 4 s: 0.4 GiB/s. The mean of the rates would be 0.625.
    records = [
        make_record(repeat=0, times={"save": 1.0}, sizes={"save": GIB}),
        make_record(repeat=1, times={"save": 4.0}, sizes={"save": GIB}),
    ]
    (operation,) = summarize(repeats_of(records)).operations
    assert operation.throughput == pytest.approx(0.4)


@pytest.mark.parametrize("name", ["save_total_gb", "load_total_gb"])
def test_without_stated_bytes_throughput_is_that_of_the_totals_of_orbax(make_record, name):
    total = Sample("save", 0, f"5_inventory/{name}", 3.0, "GiB")
    time = Sample("save", 0, "0_basics/time_s", 2.0, "s")
    (operation,) = summarize(repeats_of([make_record(samples=(time, total))])).operations
    assert operation.throughput == pytest.approx(1.5)


def test_an_operation_without_stated_bytes_beside_one_with_has_no_throughput(make_record):
    total = Sample("wait", 0, "5_inventory/save_total_gb", 3.0, "GiB")
    record = make_record(times={"save": 1.0, "wait": 1.0}, sizes={"save": GIB})
    record = record.model_copy(update={"samples": (*record.samples, total)})
    found = {op.time.operation: op.throughput for op in summarize(repeats_of([record])).operations}
    assert found == {"save": pytest.approx(1.0), "wait": None}


@pytest.mark.parametrize(
    ("times", "sizes"),
    [
        pytest.param({"save": 1.0}, {}, id="no bytes"),
        pytest.param({"save": 0.0}, {"save": GIB}, id="no time"),
    ],
)
def test_without_bytes_or_time_there_is_no_throughput(make_record, times, sizes):
    (operation,) = summarize(repeats_of([make_record(times=times, sizes=sizes)])).operations
    assert operation.throughput is None


def test_bytes_of_some_repeats_only_give_no_throughput(make_record):
    records = [
        make_record(repeat=0, times={"save": 1.0}, sizes={"save": GIB}),
        make_record(repeat=1, times={"save": 1.0}),
    ]
    (operation,) = summarize(repeats_of(records)).operations
    assert operation.throughput is None


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"warmup": True}, id="warm-up"),
        pytest.param({"status": "failed", "error": ERROR}, id="failed"),
        pytest.param({"status": "skipped", "error": ERROR}, id="skipped"),
    ],
)
def test_defect_14_only_measured_repeats_that_passed_count(repeats, make_record, fields):
    other = make_record(repeat=9, times={"save": 1000.0}, **fields)
    (metric,) = summarize(repeats_of([other, *repeats(1.0, 3.0)])).metrics
    assert (metric.n, metric.maximum) == (2, 3.0)


@pytest.mark.parametrize(
    ("times", "spread"),
    [
        pytest.param([2.0], None, id="one repeat says nothing"),
        pytest.param([0.0, 0.0], None, id="no median to relate to"),
        pytest.param([1.0, 2.0, 3.0], 0.5, id="half the median"),
        pytest.param([-1.0, -2.0, -3.0], 0.5, id="never negative"),
    ],
)
def test_spread_is_the_interquartile_range_over_the_median(repeats, times, spread):
    (metric,) = summarize(repeats_of(repeats(*times))).metrics
    assert metric.spread == spread


def test_a_point_says_how_its_repeats_ended_and_why_the_first_one_failed(make_record):
    later = ErrorInfo(type="OSError", message="later")
    records = [
        make_record(repeat=0),
        make_record(repeat=1, status="failed", error=ERROR),
        make_record(repeat=2, status="failed", error=later),
        make_record(repeat=3, status="skipped", error=later),
    ]
    (point,) = summarize(repeats_of(records)).points
    assert (point.passed, point.failed, point.skipped) == (1, 2, 1)
    assert point.reason == "ValueError: first"


@pytest.fixture
def hosts(make_record, make_point):
    """Records of one repeat on hosts with the given save times, each of which states all bytes."""

    def build(*times, repeat=0, num_hosts=None, **fields):
        return [
            make_record(
                make_point(processes=2),
                repeat,
                times={"save": time},
                sizes={"save": GIB},
                host=host,
                num_hosts=num_hosts or len(times),
                **fields,
            )
            for host, time in enumerate(times)
        ]

    return build


def test_an_operation_takes_as_long_as_on_its_slowest_host(hosts):
    (operation,) = summarize(repeats_of([*hosts(1.0, 4.0), *hosts(2.0, 1.0, repeat=1)])).operations
    assert (operation.time.minimum, operation.time.maximum, operation.time.n) == (2.0, 4.0, 2)


def test_a_metric_is_over_all_repeats_and_hosts(hosts):
    metric = summarize(repeats_of([*hosts(1.0, 4.0), *hosts(2.0, 1.0, repeat=1)])).metrics[0]
    assert (metric.minimum, metric.maximum, metric.n, metric.hosts) == (1.0, 4.0, 4, 2)


def test_bytes_that_every_host_states_are_counted_once(hosts):
    (operation,) = summarize(repeats_of(hosts(1.0, 4.0))).operations
    assert operation.throughput == pytest.approx(0.25)


def test_defect_21_a_repeat_that_lacks_a_host_has_failed_and_does_not_count(hosts):
    summary = summarize(repeats_of([*hosts(9.0, num_hosts=2), *hosts(1.0, 1.0, repeat=1)]))
    assert [operation.time.n for operation in summary.operations] == [1]
    (point,) = summary.points
    assert (point.passed, point.failed) == (1, 1)
    assert point.reason == "no record of host(s) 1"


def test_a_repeat_that_failed_on_a_host_failed_for_the_reason_of_that_host(hosts):
    peer = ErrorInfo(type=PEER_FAILED, message="host 1 failed")
    records = [
        hosts(1.0, 1.0, status="failed", error=peer)[0],
        hosts(1.0, 1.0, status="failed", error=ERROR)[1],
    ]
    (point,) = summarize(repeats_of(records)).points
    assert (point.failed, point.reason) == (1, "host 1: ValueError: first")


def csv_of(records):
    file = io.BytesIO()
    table = SummaryTable(file)
    summarize(repeats_of(records), table)
    table.end()
    return file.getvalue().decode()


def test_beside_a_table_the_summary_keeps_what_reports_show(make_record):
    records = [make_record(times={"save": 1.0}, sizes={"save": 8})]
    summary = summarize(repeats_of(records), SummaryTable(io.BytesIO()))
    assert [metric.metric for metric in summary.metrics] == [BYTES]
    assert summary.operations == summarize(repeats_of(records)).operations


def test_the_csv_reads_back_what_was_found(repeats, make_point):
    label = 'a="x, y",mesh=d8'
    records = repeats(0.1, 0.2, 0.4, point=make_point(label=label))
    (row,) = csv.DictReader(io.StringIO(csv_of(records)))
    texts = ("point_id", "point", "operation", "metric", "unit")
    read = {name: value if name in texts else float(value) for name, value in row.items()}
    assert MetricSummary(**read) == summarize(repeats_of(records)).metrics[0]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@a", "'@a"),
        ("\t=a", "'\t=a"),
        ("a\x1b]0;\x9b\u202e\ud800\r", "a\\x1b]0;\\x9b\\u202e\\ud800\\r"),
    ],
)
def test_no_name_in_the_csv_is_a_formula_or_obeyed(make_record, name, cell):
    records = [make_record(times={name: 1.0}, sizes={})]
    (row,) = csv.DictReader(io.StringIO(csv_of(records)))
    assert row["operation"] == cell


@pytest.mark.parametrize(
    ("cache", "operation", "shares", "of_operation", "of_point"),
    [
        ("cold", "load", [0.0, 0.4], "claims to be cold, but up to 40 %", None),
        ("warm", "load", [1.0, 0.3], "claims to be warm, but only 30 %", None),
        ("cold", "load", [0.0, 0.05], None, None),
        ("warm", "load", [1.0, 0.95], None, None),
        ("cold", "save", [], None, "had no effect"),
        ("warm", "save", [], None, None),
    ],
)
def test_defect_8_the_summary_flags_what_is_not_as_cold_or_warm_as_it_claims(
    make_record, make_point, cache, operation, shares, of_operation, of_point
):
    point = make_point(conditions=Conditions(cache=cache))
    time = Sample(operation, 0, TIME, 1.0, "s")
    records = [
        make_record(point, n, samples=(time, Sample(operation, 0, RESIDENT, share, "ratio")))
        for n, share in enumerate(shares)
    ]
    found = summarize(repeats_of(records or [make_record(point, samples=(time,))]))
    flags = found.operations[0].flag, found.points[0].flag
    for flag, wanted in zip(flags, (of_operation, of_point), strict=True):
        assert wanted in flag if wanted else flag is None


def lines_of(make_record, *hosts):
    """Returns the lines on hosts, each given as its index and what it says of itself."""
    finder = HostFinder()
    for index, host in hosts:
        finder.add(make_record(host=index, num_hosts=2, provenance={"host": host}))
    return finder.found()


def test_each_host_is_named_with_its_place_and_what_came_in_between(make_record):
    pod = {"name": "pod-1", "node": "gke-1", "node_pool": "v5e", "restarts": "2"}
    lines = lines_of(
        make_record,
        (0, {"name": "a", "node": "a"}),
        (1, pod),
        (1, {"name": "pod-1b", "rejoined": "1"}),
    )
    again = "started again 2 times by its launcher, started again 1 time during the run"
    assert lines == (
        "host 0: a",
        f"host 1: pod-1 (node gke-1, pool v5e) and pod-1b, {again}",
    )


STAGE, WAIT = "2_save_breakdown/worker_io_s", "2_save_breakdown/metadata_directory_wait_s"


@pytest.fixture
def straggler(make_record):
    """Returns the straggler of `save`; a repeat has (seconds, others by metric) of each host."""

    def find(*repeats):
        records = [
            [
                make_record(
                    repeat=index,
                    host=host,
                    num_hosts=len(hosts),
                    samples=[
                        Sample("save", 0, metric, seconds, "s")
                        for metric, seconds in {TIME: total, **more}.items()
                    ],
                )
                for host, (total, more) in enumerate(hosts)
            ]
            for index, hosts in enumerate(repeats)
        ]
        return stragglers_of(records).get("save")

    return find


def test_a_host_that_takes_longer_is_the_straggler_and_the_stage_is_where(straggler):
    other = "2_save_breakdown/blocking_tree_map_s"
    repeats = (
        [(1.0, {other: 0.1, STAGE: 9, WAIT: 0}), (4.0 + n, {other: 0.7, STAGE: 9, WAIT: 0})]
        for n in range(4)
    )
    found = straggler(*repeats)
    assert (found.host, found.slowest, found.repeats) == (1, 4, 4)
    assert found.excess_s == pytest.approx(4.5)
    assert (found.stage, found.stage_excess_s) == (other, pytest.approx(0.6))


def test_a_host_that_the_others_wait_for_is_known_by_its_stage(straggler):
    repeats = ([(5, {STAGE: 4, WAIT: 0.1}), (5, {STAGE: 1 + n / 9, WAIT: 0})] for n in range(4))
    found = straggler(*repeats)
    assert (found.host, found.stage) == (0, STAGE)
    assert found.excess_s == found.stage_excess_s == pytest.approx(2.9 - 0.5 / 3)


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param([(1, {}), (1, {STAGE: 0.9})], id="a stage of one host"),
        pytest.param([(1, {STAGE: 0.1}), (1, {STAGE: 0.9})], id="waits that nobody timed"),
        pytest.param([(1, {STAGE: 0.1, WAIT: 0}), (1, {STAGE: 0.9, WAIT: 0.8})], id="a wait"),
        pytest.param([(1, {STAGE: 0.01, WAIT: 0}), (1, {STAGE: 0.05, WAIT: 0})], id="too little"),
        pytest.param([(1, {}), (1.2, {})], id="too near"),
    ],
)
def test_a_host_is_no_straggler_by_what_may_not_be_its_own_time(straggler, hosts):
    assert straggler(*[hosts] * 9) is None


def test_hosts_that_are_slowest_in_turn_or_once_are_no_stragglers(straggler):
    assert straggler([(1, {}), (9, {})]) is None
    assert straggler(*([(1, {}), (9, {})], [(9, {}), (1, {})]) * 4, [(1, {}), (9, {})]) is None


@pytest.fixture
def table(make_record):
    """Returns the lines of the summary of repeats with values of their own, and these values."""

    def make(*scales, uneven=False):
        draw = random.Random(len(scales))
        values = [draw.lognormvariate(0, 1) * scale for scale in scales]
        more = (Sample("save", 0, "x/y", 1.0, ""),) if uneven else ()
        records = [
            make_record(repeat=n, samples=(Sample("save", 0, "a/b", value, "s"), *more[:n]))
            for n, value in enumerate(values)
        ]
        file = io.BytesIO()
        summary = SummaryTable(file)
        summarize(repeats_of(records), summary)
        summary.end()
        return file.getvalue().decode().splitlines(), values

    return make


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("scales", [(1,), (1, 1), (1,) * 7, (1e-9, 1, 1e20), (0, 1, -1), (-0.0, 1)])
def test_numbers_are_those_of_the_standard_library(table, scales, uneven):
    lines, values = table(*scales, uneven=uneven)
    found = [float(text) for text in lines[1].split(",")[-7:]]
    cuts = (
        statistics.quantiles(values, n=100, method="inclusive") if len(values) > 1 else values * 99
    )
    low, high = cuts[24], cuts[74]
    assert found[:2] == [statistics.fmean(values), statistics.median(values)]
    assert found[2:5] == pytest.approx([low, high, cuts[98]], rel=1e-12)
    assert found[5:] == [min(values), max(values)]
    assert lines[1].split(",")[-7:] == [repr(number) for number in found]


def test_repeats_without_a_sample_have_no_line(make_record):
    file = io.BytesIO()
    summary = SummaryTable(file)
    summarize(repeats_of([make_record(samples=())]), summary)
    summary.end()
    assert file.getvalue().count(b"\n") == 1
