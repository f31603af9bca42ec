"""Time and throughput of operations."""

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.exports.tensorboard.operations import collect, operations
from orbax_bench_core.measure import BYTES, TIME, Sample
from orbax_bench_core.records import repeats_of
from tests.support.repeats import repeat_over

GIB = 2**30


@pytest.fixture
def find():
    """Returns the operations of single-host or several-host records, by name."""

    def find_them(*records, num_hosts=1):
        by_index = {}
        for record in records:
            by_index.setdefault(record.repeat, {})[record.host] = record
        repeats = [repeat_over(hosts, num_hosts) for hosts in by_index.values()]
        return {one.name: one for one in operations(collect(repeats))}

    return find_them


def test_throughput_is_all_bytes_over_all_seconds(find, make_record):
    records = [
        make_record(repeat=repeat, times={"save": seconds}, sizes={"save": GIB})
        for repeat, seconds in enumerate([1.0, 3.0])
    ]
    assert find(*records)["save"].throughput == 0.5


def test_defect_17_total_time_and_throughput_are_of_the_same_host(find, make_record, make_point):
    point = make_point(processes=2)
    records = [
        make_record(point, host=host, num_hosts=2, times={"save": time}, sizes={"save": GIB})
        for host, time in enumerate([1.0, 4.0])
    ]
    save = find(*records, num_hosts=2)["save"]
    assert (save.seconds, save.throughput) == ([4.0], 0.25)


def test_the_summary_says_the_same(find, make_record):
    records = [
        make_record(repeat=repeat, times={"save": seconds}, sizes={"save": GIB})
        for repeat, seconds in enumerate([1.0, 3.0])
    ]
    [summary] = summarize(repeats_of(records)).operations
    assert find(*records)["save"].throughput == summary.throughput


def test_orbaxs_totals_serve_where_no_author_states_bytes(find, make_record):
    samples = (
        Sample("save", 0, TIME, 2.0, "s"),
        Sample("save", 0, "5_inventory/save_total_gb", 1.0, "GiB"),
    )
    assert find(make_record(samples=samples))["save"].throughput == 0.5


def test_an_operation_without_bytes_beside_one_with_has_no_throughput(find, make_record):
    samples = (
        Sample("save_blocking", 0, TIME, 2.0, "s"),
        Sample("save_blocking", 0, "5_inventory/save_total_gb", 1.0, "GiB"),
        Sample("save", 0, TIME, 2.0, "s"),
        Sample("save", 0, BYTES, 8.0, "bytes"),
    )
    assert find(make_record(samples=samples))["save_blocking"].throughput is None


def test_no_bytes_at_all_give_no_throughput(find, make_record):
    assert find(make_record(times={"wait": 1.0}))["wait"].throughput is None


def test_an_operation_that_took_no_time_has_no_throughput(find, make_record):
    record = make_record(times={"save": 0.0}, sizes={"save": 1})
    assert find(record)["save"].throughput is None


@pytest.mark.parametrize("store", ["file", "gcs"])
def test_what_tensorstore_wrote_and_read_stand_apart(find, make_record, store):
    metric = f"6_tensorstore/tensorstore_kvstore_{store}_bytes_{{}}_value_diff"
    samples = (
        Sample("save", 0, TIME, 2.0, "s"),
        Sample("save", 0, metric.format("written"), 1000.0, "bytes"),
        Sample("save", 0, metric.format("read"), 5.0, "bytes"),
    )
    costs = find(make_record(samples=samples))["save"].costs
    assert costs["written by TensorStore"].values == [1000.0]
    assert costs["read by TensorStore"].values == [5.0]
