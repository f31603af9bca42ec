"""Seconds of operations: slowest host, sum of occurrences, only repeats that passed."""

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records.operation_times import by_point, repeat_times


def test_an_operation_takes_as_long_as_on_its_slowest_host(make_record):
    hosts = [make_record(times={"save": 1.0 + host}, host=host, num_hosts=2) for host in (0, 1)]
    assert repeat_times(hosts) == {"save": (2.0,)}


def test_an_operation_that_occurs_twice_takes_the_sum(make_record):
    samples = tuple(Sample("save", index, TIME, 1.0 + index, "s") for index in (0, 1))
    assert repeat_times([make_record(samples=samples)]) == {"save": (3.0,)}


def test_a_repeat_that_lacks_a_host_does_not_count(make_record):
    assert repeat_times([make_record(times={"save": 1.0}, num_hosts=2)]) == {}


def test_failed_repeats_and_warmups_do_not_count(make_record):
    records = [
        make_record(repeat=0, times={"save": 1.0}, warmup=True),
        make_record(repeat=1, times={"save": 2.0}, status="failed"),
        make_record(repeat=2, times={"save": 3.0}),
    ]
    assert repeat_times(records) == {"save": (3.0,)}


def test_points_keep_the_order_in_which_they_occur(make_record, make_point):
    points = [make_point(options={"a": a}) for a in (2, 1, 2)]
    records = [make_record(point) for point in points]
    assert [*by_point(records)] == [points[0].id, points[1].id]
