"""Seconds of operations: slowest host, sum of occurrences, only repeats that passed."""

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import seconds_per_repeat


def test_failed_repeats_and_warmups_do_not_count(make_record):
    records = [
        make_record(repeat=0, times={"save": 1.0}, warmup=True),
        make_record(repeat=1, times={"save": 2.0}, status="failed"),
        make_record(repeat=2, times={"save": 3.0}),
    ]
    assert seconds_per_repeat(records) == {"save": (3.0,)}


def test_occurrences_add_up_each_on_its_slowest_host(make_record):
    hosts = [
        make_record(
            samples=(Sample("save", 0, TIME, a, "s"), Sample("save", 1, TIME, b, "s")),
            host=host,
            num_hosts=2,
        )
        for host, (a, b) in enumerate(((1.0, 5.0), (2.0, 4.0)))
    ]
    assert seconds_per_repeat(hosts) == {"save": (7.0,)}


def test_other_metrics_and_a_repeat_that_lacks_a_host_are_no_time(make_record):
    assert seconds_per_repeat([make_record(sizes={"save": 8})]) == {}
    assert seconds_per_repeat([make_record(times={"save": 1.0}, num_hosts=2)]) == {}


def test_what_one_repeat_lacks_has_its_place_among_the_others(make_record):
    parts = [("a", "d"), ("a", "b", "c", "d"), ("b", "e")]
    records = [
        make_record(repeat=repeat, times=dict.fromkeys(operations, 1.0))
        for repeat, operations in enumerate(parts)
    ]
    assert list(seconds_per_repeat(records)) == ["a", "b", "e", "c", "d"]
