"""Trouble with an object store in records, tables and sentences."""

from orbax_bench_core.measure import RETRIES, TIME, Sample
from orbax_bench_core.records import repeats_of, store_flags, troubles_of
from orbax_bench_core.records.disturbances import flags_of
from orbax_bench_core.records.samples import samples_table


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
    found = {(one.occurrence, one.kind): one.count for one in troubles_of(THROTTLED)}
    assert found == {(0, "throttled"): 3, (0, "retries"): 3, (1, "storage errors"): 4}


def test_nothing_counted_is_no_trouble():
    assert troubles_of([sample(TIME, 1.0), sample("6_tensorstore/http_404_count", 4)]) == ()


def test_samples_carry_the_flags_of_their_operation(make_record):
    samples = (*THROTTLED, sample(TIME, 1.0), sample(TIME, 1.0, "load"))
    record = make_record(samples=samples, store_troubles=troubles_of(samples))
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
            store_troubles=troubles_of(THROTTLED) if repeat else (),
        )
        for repeat in range(3)
    ]
    assert store_flags(repeats_of(records))["save"].sentence == (
        "2 of 3 repeats had trouble with storage: 6 throttled answers (429 or 408), 8 failed "
        "answers (5xx), 6 retries"
    )
