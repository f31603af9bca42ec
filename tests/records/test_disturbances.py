"""Repeats that were measured beside others on one machine, or had trouble with an object store."""

import datetime

import pytest

from orbax_bench_core.measure import RETRIES, TIME, Sample
from orbax_bench_core.records import (
    ErrorInfo,
    OverlapFinder,
    Record,
    StoreTrouble,
    repeats_of,
    store_flags,
)
from orbax_bench_core.records.record import Attempt
from orbax_bench_core.records.samples import samples_table
from orbax_bench_core.records.store_troubles import flags_of

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.fixture
def measured(make_record, make_point):
    """A record of one of two points: from when to when, and by which worker on which machine."""

    def make(point, begun, ended, *, worker="", name="a", node="", **fields):
        host = {"name": name, **({"node": node} if node else {})}
        record = make_record(make_point(options={"point": point}), times={"save": 1.0}, **fields)
        return record.model_copy(
            update={
                "started_at": NOON + datetime.timedelta(seconds=begun),
                "duration_s": ended - begun,
                "worker": worker or f"{name}:{point}:1",
                "provenance": {"host": host},
            }
        )

    return make


def found(*records: Record):
    finder = OverlapFinder()
    for repeat in repeats_of(records):
        finder.add(repeat)
    return sorted(finder.found().values())


def test_repeats_of_two_points_at_the_same_time_on_one_machine_were_not_alone(measured):
    assert found(measured(1, 0, 10), measured(2, 5, 15)) == [1, 1]


def test_repeats_that_follow_each_other_or_are_on_two_machines_were_alone(measured):
    records = [measured(1, 0, 10, repeat=0), measured(1, 10, 20, repeat=1), measured(2, 20, 30)]
    assert found(*records) == []
    assert found(measured(1, 0, 10.01), measured(2, 10, 20)) == []  # a moment is no overlap
    assert found(measured(1, 0, 10), measured(2, 5, 15, name="b")) == []


def test_each_repeat_counts_once_however_many_disturbed_it(measured):
    long = measured(1, 0, 100)
    short = [measured(2, 10 * index, 10 * index + 5, repeat=index) for index in range(5)]
    assert found(long, *short) == [1, 5]


def test_pods_on_one_node_were_not_alone(measured):
    one = measured(1, 0, 10, name="pod-1", node="n")
    assert found(one, measured(2, 5, 15, name="pod-2", node="n")) == [1, 1]
    assert found(one, measured(2, 5, 15, name="pod-2", node="m")) == []


def test_hosts_of_one_repeat_are_no_company_for_each_other(measured):
    hosts = [measured(1, 0, 10, worker=f"a:{host}:1", host=host, num_hosts=2) for host in range(2)]
    assert found(*hosts) == []


def test_warm_ups_and_failed_tries_disturb_and_do_not_count(measured):
    alone = measured(1, 0, 10)
    assert found(alone, measured(2, 5, 15, warmup=True)) == [1]
    error = ErrorInfo(type="E", message="m")
    assert found(alone, measured(2, 5, 15, status="failed", error=error)) == [1]
    tried = Attempt(error=error, started_at=NOON, duration_s=3.0, worker="a:9:1")
    assert found(alone, measured(2, 20, 30, attempts=(tried,))) == [1]


@pytest.mark.parametrize("lacking", [{"worker": ""}, {"provenance": {}}])
def test_records_that_do_not_say_who_measured_where_are_no_company(measured, lacking):
    one, other = measured(1, 0, 10), measured(2, 5, 15)
    assert found(one, other.model_copy(update=lacking)) == []


def sample(metric, value, operation="save", occurrence=0):
    return Sample(operation, occurrence, metric, float(value), "count")


THROTTLED = (
    sample("6_tensorstore/http_429_count", 2),
    sample("6_tensorstore/http_408_count", 1),
    sample("6_tensorstore/http_503_count", 4, occurrence=1),
    sample("6_tensorstore/http_404_count", 5),
    sample(RETRIES.name, 3),
)


def test_kinds_are_told_from_codes_and_404_is_normal():
    found = {(one.occurrence, one.kind): one.count for one in StoreTrouble.all_of(THROTTLED)}
    assert found == {(0, "throttled"): 3, (0, "retries"): 3, (1, "storage errors"): 4}


def test_nothing_counted_is_no_trouble():
    assert StoreTrouble.all_of([sample(TIME, 1.0), sample("6_tensorstore/http_404_count", 4)]) == ()


def test_samples_carry_the_flags_of_their_operation(make_record):
    samples = (*THROTTLED, sample(TIME, 1.0), sample(TIME, 1.0, "load"))
    record = make_record(samples=samples, store_troubles=StoreTrouble.all_of(samples))
    assert flags_of(record)["save", 0] == ("throttled", "retries")
    rows = samples_table([record]).to_pylist()
    found = {(row["operation"], row["occurrence"]): row["flags"] for row in rows}
    assert found == {
        ("save", 0): "throttled, retries",
        ("save", 1): "storage errors",
        ("load", 0): "",
    }


def test_flags_are_counted_by_repeat_and_said(make_record):
    records = [
        make_record(
            repeat=repeat,
            times={"save": 1.0},
            store_troubles=StoreTrouble.all_of(THROTTLED) if repeat else (),
        )
        for repeat in range(3)
    ]
    assert store_flags(repeats_of(records))["save"].sentence == (
        "2 of 3 repeats had trouble with storage: 6 throttled answers (429 or 408), 8 failed "
        "answers (5xx), 6 retries"
    )
