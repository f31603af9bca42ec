"""From the records of a pair to arrays: which blocks count, and why others do not."""

import dataclasses

import numpy as np
import pytest

from orbax_bench_core.reasons import because
from orbax_bench_core.records import repeats_of
from orbax_bench_core.records.errors import ErrorInfo
from orbax_bench_core.records.paired import FirstAttempts, PairedTimes
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
    assert found.problem == ()


def failing(record, kind="ValueError", **fields):
    error = ErrorInfo(type=kind, message="no space")
    return record.model_copy(update={"status": "failed", "error": error, **fields})


def test_a_first_attempt_that_failed_is_in_its_block_and_takes_for_ever(block_records):
    records = block_records(range(3))
    records[9] = failing(records[9], samples=())
    found = PairedTimes.of(repeats_of(records))
    assert found.times["save"].tolist() == [*[[1.0, 2.0, 2.0, 1.0]] * 2, [1.0, np.inf, 2.0, 1.0]]
    assert found.failed.tolist() == [*[[False] * 4] * 2, [False, True, False, False]]
    first = {"block": 2, "example": "ValueError: no space"}
    assert found.attempts["candidate"] == FirstAttempts(count=6, failed=1, **first)
    assert (found.problem, found.stopped) == ((), False)
    assert found.of_arms("save")["candidate"] == (2.0,) * 5
    assert found.log_ratios("save") == pytest.approx([np.log(2)] * 3)


def test_a_retry_that_passed_changes_nothing(block_records):
    records = block_records(range(2))
    records[5] = records[5].model_copy(update={"attempts": failing(records[5]).as_attempt()})
    found = PairedTimes.of(repeats_of(records))
    assert found.times["save"][1].tolist() == [1.0, np.inf, 2.0, 1.0]
    assert found.attempts["candidate"].failed == 1


@pytest.mark.parametrize("kind", ["UnmetNeed", "EnvironmentFailed", "OptionWithoutEffect"])
def test_what_cannot_run_here_ends_the_comparison_and_is_no_failure(block_records, kind):
    records = block_records(range(3))
    records[9] = failing(records[9], kind)
    found = PairedTimes.of(repeats_of(records))
    assert (len(found.labels), found.stopped) == (2, True)
    assert found.attempts["candidate"].failed == 0
    (why,) = found.problem
    assert (why.code, why.values["arm"], why.values["block"]) == ("arm_impossible", "candidate", 2)
    assert (why.values["status"], why.values["said"]) == ("failed", f"{kind}: no space")


def test_a_need_that_is_met_later_leaves_no_failure(block_records):
    records = block_records([0])
    lacked = failing(records[1], "UnmetNeed").as_attempt()
    records[1] = records[1].model_copy(update={"attempts": lacked})
    found = PairedTimes.of(repeats_of(records))
    assert not found.failed.any()
    assert found.times["save"].tolist() == [[1.0, 2.0, 2.0, 1.0]]


def test_nothing_in_the_first_block_leaves_nothing_to_compare(block_records):
    found = PairedTimes.of(repeats_of(list(map(failing, block_records([0])))))
    assert found.stopped
    assert found.problem == because("nothing_passed", said="ValueError: no space")


def test_a_peer_that_ended_with_a_host_tells_nothing_of_its_own(block_records):
    own = [failing(record, "UnmetNeed") for record in block_records([0], num_hosts=2)]
    peers = [failing(record, "PeerFailed") for record in block_records([0], host=1, num_hosts=2)]
    assert PairedTimes.of(repeats_of([*own, *peers])).attempts["baseline"].failed == 0


@pytest.fixture
def life_records(make_point, make_record):
    """Records of blocks of lives with three operations, each life with a worker of its own."""
    point = make_point()
    pair = Pair(baseline=point, candidate=point)

    def make(blocks):
        return [
            make_record(
                pair,
                12 * block + 3 * slot + operation,
                arm=arm,
                block=block,
                life=slot,
                worker=f"h:{4 * block + slot}:0",
                times={"save": 1.0 + operation},
            )
            for block in blocks
            for slot, arm in enumerate(ORDER)
            for operation in range(3)
        ]

    return make


def test_lives_have_one_row_of_operations_each(life_records):
    found = PairedTimes.of(repeats_of(life_records(range(2))))
    assert found.lives
    assert found.labels.tolist() == [[False, True, True, False]] * 2
    assert found.times["save"].tolist() == [[[1.0, 2.0, 3.0]] * 4] * 2
    assert found.of_arms("save")["candidate"] == (1.0, 1.0, 2.0, 2.0, 3.0, 3.0) * 2
    assert found.continued == 0


def test_a_round_is_no_block_of_lives(life_records):
    first_round = [record for record in life_records([0]) if record.repeat % 3 == 0]
    assert len(PairedTimes.of(repeats_of(first_round)).labels) == 0


@pytest.mark.parametrize(("failed", "continued"), [(False, 1), (True, 0)])
def test_a_life_that_went_on_in_another_process_is_counted_unless_after_a_failure(
    life_records, failed, continued
):
    first, *rest = life_records([0])
    rest[:2] = [record.model_copy(update={"worker": "h:9:0"}) for record in rest[:2]]
    records = [failing(first) if failed else first, *rest]
    assert PairedTimes.of(repeats_of(records)).continued == continued


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
    assert found.problem == because("record_lost", arm="baseline", hosts=(1,), block=0)


def test_different_numbers_of_hosts_within_an_arm_are_said(block_records):
    records = block_records([0]) + block_records([1], num_hosts=2)
    found = PairedTimes.of(repeats_of(records))
    assert len(found.labels) == 0
    assert found.problem == because("hosts_differ", arm="baseline", hosts=(1, 2))


def test_an_operation_that_one_arm_lacks_is_missing_there_and_never_left_out(block_records):
    records = [
        record.model_copy(update={"samples": ()}) if record.arm == "candidate" else record
        for record in block_records([0])
    ]
    found = PairedTimes.of(repeats_of(records))
    np.testing.assert_equal(found.times["save"].tolist(), [[1.0, np.nan, np.nan, 1.0]])
    assert found.of_arms("save") == {"baseline": (1.0, 1.0), "candidate": ()}
    assert np.isnan(found.log_ratios("save")).all()


def test_warm_ups_do_not_count(block_records):
    assert len(PairedTimes.of(repeats_of(block_records([0], warmup=True))).labels) == 0


@pytest.mark.parametrize("lacking", ["baseline", "candidate"])
def test_an_operation_that_an_arm_lacks_keeps_its_place(make_point, make_record, lacking):
    point = make_point()
    pair = Pair(baseline=point, candidate=point)
    whole = dict.fromkeys(("alpha", "beta", "gamma", "delta"), 1.0)
    rest = {name: seconds for name, seconds in whole.items() if name != "gamma"}
    records = [
        make_record(pair, slot, arm=arm, block=0, times=rest if arm == lacking else whole)
        for slot, arm in enumerate(ORDER)
    ]
    assert list(PairedTimes.of(repeats_of(records)).times) == list(whole)
