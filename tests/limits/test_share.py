"""The arithmetic of shares, with limits that are made up: 1 GiB in so many seconds."""

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.config import Conditions
from orbax_bench_core.limits.share import (
    limit_columns,
    operation_limits,
    unasked,
)
from orbax_bench_core.measure import PAGE_FAULTS, Sample
from orbax_bench_core.records import repeats_of
from tests.support.limits import GIB, PAGE, made_up

SECONDS = {
    "write_fsync": 1.0,
    "read_cold": 0.8,
    "read_warm": 0.2,
    "memory_copy": 0.1,
    "first_touch": 2.0,
    "tensorstore_write": 2.5,
    "tensorstore_read_cold": 1.6,
    "tensorstore_read_warm": 0.5,
    "tensorstore_write_uncompressed": 1.25,
    "tensorstore_read_cold_uncompressed": 1.0,
    "tensorstore_read_warm_uncompressed": 0.4,
}
REMOTE = {name: SECONDS[name] for name in SECONDS if name.startswith(("memory", "first"))} | {
    "tensorstore_write": 5.0,
    "tensorstore_read_cold": 4.0,
}


@pytest.fixture
def compare(make_point, make_record):
    """Compares one operation of 2 GiB that took 4 seconds with made-up limits."""

    def compare_(operation, *, limits=None, faults=None, compression=True, **conditions):
        point = make_point(
            options={"use_compression": compression}, conditions=Conditions(**conditions)
        )
        record = make_record(point, times={operation: 4.0}, sizes={operation: 2 * GIB})
        if faults is not None:
            counted = Sample(operation, 0, PAGE_FAULTS, faults, "count")
            record = record.model_copy(update={"samples": (*record.samples, counted)})
        found = operation_limits(
            summarize(repeats_of([record])), [point], limits or made_up(SECONDS)
        )
        return found.get((point.id, operation))

    return compare_


def test_what_no_point_is_compared_with_is_not_asked_of_tensorstore(make_point):
    plain = make_point(options={"use_compression": False}, conditions=Conditions(cache="cold"))
    compressed, cold = make_point(), "tensorstore_read_cold"
    assert unasked([compressed], "/disk") == [
        cold,
        *(f"{name}_uncompressed" for name in ("tensorstore_write", cold, "tensorstore_read_warm")),
    ]
    assert unasked([compressed, plain], "/disk") == [cold, "tensorstore_read_warm_uncompressed"]
    assert cold not in unasked([compressed], "gs://bucket")


def test_a_save_is_bounded_by_writing_and_costs_more_than_tensorstore(compare):
    found = compare("save")
    assert (found.bound.probe, found.bound.share) == ("write_fsync", 0.5)
    assert found.overhead == pytest.approx(4.0 / 5.0)


def test_a_cold_load_is_bounded_by_cold_reads(compare):
    found = compare("load", cache="cold")
    assert found.bound.probe == "read_cold"
    assert (found.bound.limit_s, found.bound.share) == (1.6, 0.4)
    assert found.overhead == pytest.approx(4.0 / 3.2)


@pytest.mark.parametrize(
    ("copy_s", "bound", "share"), [(0.1, "read_warm", 0.1), (0.9, "memory_copy", 0.45)]
)
def test_a_warm_load_is_bounded_by_the_slower_of_warm_reads_and_copies(
    compare, copy_s, bound, share
):
    found = compare("load", limits=made_up(SECONDS | {"memory_copy": copy_s}))
    assert (found.bound.probe, found.bound.share) == (bound, pytest.approx(share))
    assert found.overhead == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("operation", "cache", "raw_s"),
    [("save", "warm", 2.5), ("load", "cold", 2.0), ("load", "warm", 0.8)],
)
def test_uncompressed_data_is_compared_with_tensorstore_without_compression(
    compare, operation, cache, raw_s
):
    found = compare(operation, cache=cache, compression=False)
    assert found.overhead == pytest.approx(4.0 / raw_s)


@pytest.mark.parametrize(
    ("operation", "probe", "share"),
    [("save", "tensorstore_write", 2.5), ("load", "tensorstore_read_cold", 2.0)],
)
def test_an_object_store_is_measured_by_tensorstore(compare, operation, probe, share):
    found = compare(operation, limits=made_up(REMOTE, path="gs://bucket"))
    assert (found.bound.probe, found.bound.share) == (probe, share)
    assert found.overhead == pytest.approx(1 / share)


def test_overhead_is_unknown_with_another_allocator_than_the_probes_had(compare):
    assert compare("save", host_memory="fresh").overhead is None


@pytest.mark.parametrize(
    ("host_memory", "faults", "share"),
    [("fresh", 3, 1.0), *((kind, 3 * GIB / PAGE, 1.5) for kind in ("fresh", "default", "reused"))],
)
def test_page_faults_say_how_much_is_touched_and_fresh_memory_at_least_the_result(
    compare, host_memory, faults, share
):
    found = compare("load", host_memory=host_memory, faults=faults)
    assert (found.bound.probe, found.bound.share) == ("first_touch", share)


def test_the_sentence_names_first_touch_where_it_takes_half_of_the_time_and_advises_once(compare):
    found = compare("load", host_memory="default", faults=GIB / PAGE)
    assert found.first_touch == (
        "First touch of fresh memory, at 0.5 GiB/s on this machine, accounts for about 50 % of "
        "this load; `host_memory: reused` keeps most of it out."
    )
    found = compare("save", faults=3 * GIB / PAGE)
    assert found.first_touch.endswith("accounts for about 100 % of this save.")
    assert compare("load", host_memory="default", faults=0.9 * GIB / PAGE).first_touch == ""


def test_limits_become_columns_of_the_operations_table(compare):
    cold = compare("load", cache="cold")
    touching = compare("load", host_memory="default", faults=GIB / PAGE)
    columns = limit_columns({("p1", "load"): cold, ("p2", "load"): touching})
    assert columns.headings == ("limit", "of limit", "vs TensorStore")
    assert columns.cells == {
        ("p1", "load"): ("cold read", "40 %", "1.25x"),
        ("p2", "load"): ("first touch of memory", "50 %", "–"),
    }
    assert columns.notes == {("p2", "load"): touching.first_touch}
    assert columns.legend
    assert not limit_columns({}).headings
