"""From the records of a pair to arrays: which blocks count, and why others do not."""

import dataclasses

import numpy as np
import pytest

from orbax_bench_core.records import repeats_of
from orbax_bench_core.records.paired import PairedTimes
from orbax_bench_core.records.record import ErrorInfo
from orbax_bench_core.sweep import Pair

ORDER = ("baseline", "candidate", "candidate", "baseline")


@pytest.fixture
def block_records(make_point, make_record):
    """Records of blocks in which the candidate takes twice as long."""
    point = make_point()
    pair = Pair(baseline=point, candidate=point)

    def make(blocks, **fields):
        return [
            make_record(
                pair,
                4 * block + slot,
                arm=arm,
                block=block,
                times={"save": 2.0 if arm == "candidate" else 1.0},
                **fields,
            )
            for block in blocks
            for slot, arm in enumerate(ORDER)
        ]

    return make


def test_times_and_labels_keep_the_order_of_measurement(block_records):
    found = PairedTimes.of(repeats_of(block_records(range(3))))
    assert found.labels.tolist() == [[False, True, True, False]] * 3
    assert found.times["save"].tolist() == [[1.0, 2.0, 2.0, 1.0]] * 3
    assert found.of_arms("save") == {"baseline": (1.0,) * 6, "candidate": (2.0,) * 6}
    assert found.log_ratios("save") == pytest.approx([np.log(2)] * 3)


def test_the_order_of_the_records_changes_nothing(block_records):
    records = block_records(range(3))
    assert (
        PairedTimes.of(repeats_of(records[::-1])).times["save"].tolist()
        == [[1.0, 2.0, 2.0, 1.0]] * 3
    )


def test_a_block_that_is_not_complete_does_not_count(block_records):
    found = PairedTimes.of(repeats_of(block_records(range(2))[:-1]))
    assert len(found.labels) == 1
    assert found.problem == ""


def test_an_arm_that_fails_halfway_is_said(block_records):
    records = block_records(range(3))
    error = ErrorInfo(type="ValueError", message="no space")
    records[9] = records[9].model_copy(update={"status": "failed", "error": error})
    found = PairedTimes.of(repeats_of(records))
    assert len(found.labels) == 2
    assert found.failed == ("candidate",)
    assert found.problem == "the candidate failed in block 2: ValueError: no space"


def test_the_slowest_host_counts(block_records):
    slow = [
        record.model_copy(
            update={"samples": tuple(dataclasses.replace(s, value=5.0) for s in record.samples)}
        )
        for record in block_records([0], host=1, num_hosts=2)
    ]
    found = PairedTimes.of(repeats_of([*block_records([0], num_hosts=2), *slow]))
    assert found.times["save"].tolist() == [[5.0] * 4]


def test_a_host_without_a_record_is_said(block_records):
    found = PairedTimes.of(repeats_of(block_records([0], num_hosts=2)))
    assert len(found.labels) == 0
    assert found.problem == "the baseline has no record of host 1 in block 0"


def test_different_numbers_of_hosts_within_an_arm_are_said(block_records):
    records = block_records([0]) + block_records([1], num_hosts=2)
    found = PairedTimes.of(repeats_of(records))
    assert len(found.labels) == 0
    assert "different numbers of hosts: 1, 2" in found.problem


def test_an_operation_that_one_arm_lacks_is_left_out(block_records):
    records = [
        record.model_copy(update={"samples": ()}) if record.arm == "candidate" else record
        for record in block_records([0])
    ]
    assert PairedTimes.of(repeats_of(records)).times == {}


def test_warm_ups_do_not_count(block_records):
    assert len(PairedTimes.of(repeats_of(block_records([0], warmup=True))).labels) == 0
