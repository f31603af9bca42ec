"""How long the operations of a repeat took: the slowest host, and the sum of occurrences."""

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records.operation_times import repeat_seconds


def test_the_slowest_host_counts(make_record):
    hosts = [make_record(times={"save": 1.0}), make_record(host=1, times={"save": 3.0})]
    assert repeat_seconds(hosts) == {"save": 3.0}


def test_occurrences_add_up_each_on_its_slowest_host(make_record):
    hosts = [
        make_record(samples=(Sample("save", 0, TIME, a, "s"), Sample("save", 1, TIME, b, "s")))
        for a, b in ((1.0, 5.0), (2.0, 4.0))
    ]
    assert repeat_seconds(hosts) == {"save": 7.0}


def test_other_metrics_are_no_time(make_record):
    assert repeat_seconds([make_record(sizes={"save": 8})]) == {}
