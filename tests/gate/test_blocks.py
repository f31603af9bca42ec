"""Checks of measured blocks, with exact messages."""

import numpy as np
import pytest

from orbax_bench_core.analysis.verdicts import why
from orbax_bench_core.gate.blocks import random_labels, read_blocks

LABELS = [[True, True, False, False], [True, False, True, False]]
TIMES = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]


def changed(table, block, slot, value):
    found = [list(row) for row in table]
    found[block][slot] = value
    return found


NAN, INF = float("nan"), float("inf")
NOTHING = "every attempt of the baseline failed: there is nothing to compare with"
BAD_TIMES = [
    (
        changed(TIMES, 1, 2, 0.0),
        "the value in block 1, slot 2 is 0: a ratio needs positive, finite numbers",
    ),
    (changed(TIMES, 0, 3, -1.5), "the value in block 0, slot 3 is -1.5"),
    (changed(TIMES, 0, 0, -INF), "the value in block 0, slot 0 is -inf"),
    (
        changed(TIMES, 1, 2, NAN),
        "the candidate lacks it in 1 of 4 repeats, first in block 1",
    ),
    (
        changed(changed(TIMES, 0, 3, NAN), 0, 0, NAN),
        "the baseline lacks it in 1 of 4 repeats, first in block 0; the candidate lacks it in 1 of",
    ),
    (np.full((2, 4), INF), NOTHING),
    (np.where(LABELS, 1.0, INF), NOTHING),
    (changed(TIMES, 0, 0, "fast"), "times: no values that can be compared"),
    ([[1.0, 2.0], [3.0]], "times: no values that can be compared"),
    (None, "times: no values that can be compared; shape ()"),
    ([1.0, 2.0, 3.0, 4.0], "times: no values that can be compared; shape (4,)"),
    ([[1.0] * 6] * 2, "times: no values that can be compared; shape (2, 6)"),
]
BAD_LABELS = [
    (LABELS[:1], "labels: no values that can be compared; shape (1, 4)"),
    ([[True], [True, False]], "labels: no values that can be compared"),
    (
        [["a", "b", "a", "b"]] * 2,
        "labels: no values that can be compared",
    ),
    (changed([[1, 1, 0, 0]] * 2, 0, 0, 2), "labels: no values that can be compared"),
    ([LABELS[0], [False] * 4], "block 1 has 0 slots of the candidate and 4 of the baseline"),
    ([[True] * 4, LABELS[1]], "block 0 has 4 slots of the candidate and 0 of the baseline"),
    (
        [LABELS[0], [True, True, True, False]],
        "block 1 has 3 slots of the candidate and 1 of the baseline, not 2 of each",
    ),
]


@pytest.mark.parametrize(
    ("times", "labels", "message"),
    [
        *((times, LABELS, message) for times, message in BAD_TIMES),
        *((TIMES, labels, message) for labels, message in BAD_LABELS),
        (TIMES[:1], LABELS[:1], "1 block: noise shows only from 2 blocks on"),
        (np.empty((0, 4)), np.empty((0, 4), bool), "no blocks: noise shows only"),
    ],
)
def test_bad_input_is_said_exactly(times, labels, message):
    found = read_blocks(times, labels)
    assert isinstance(found, tuple)
    assert why(found).startswith(message)


def test_good_input_is_logs():
    found = read_blocks(TIMES, LABELS)
    np.testing.assert_allclose(found.logs[:, :, 0], np.log(TIMES))
    assert (found.operations, found.per_life, found.lives) == (4, 1, False)


def test_slots_can_be_lives():
    found = read_blocks(np.ones((2, 4, 3)), LABELS)
    assert (found.operations, found.per_life, found.lives) == (12, 3, True)


def test_what_failed_is_ten_times_as_slow_as_the_slowest_that_did_not():
    found = read_blocks(changed(TIMES, 0, 0, float("inf")), LABELS)
    assert found.failed.sum() == 1
    assert found.logs[0, 0, 0] == pytest.approx(np.log(80))


def test_what_failed_is_measured_by_the_blocks_of_its_look_alone():
    times = [*changed(TIMES, 0, 0, float("inf")), [1000.0] * 4]
    found = read_blocks(times, [*LABELS, LABELS[0]])
    assert found.first(2).logs[0, 0, 0] == pytest.approx(np.log(80))


def test_a_candidate_that_always_fails_can_be_judged():
    found = read_blocks(np.where(LABELS, np.inf, TIMES), LABELS)
    assert not found.some_worked(candidate=True)


def test_a_slow_down_is_undone_by_share_or_by_seconds_whichever_is_larger():
    found = read_blocks([[1.5, 10.0, 1.0, 10.0], [4.0, 4.0, 4.0, 4.0]], LABELS)
    undone = np.exp(found.as_baseline(np.log(1.1), floor=0.5))[..., 0]
    # 1.5 - 0.5 < 1.5 / 1.1, but 10 / 1.1 < 10 - 0.5; the baseline stays as it is.
    np.testing.assert_allclose(undone[0], [1.0, 10 / 1.1, 1.0, 10.0])


def test_what_cannot_come_of_any_baseline_ranks_lowest():
    found = read_blocks([[0.3, 5.0, 1.0, 1.0], [4.0, 4.0, 4.0, 4.0]], LABELS)
    undone = found.as_baseline(0.0, floor=0.5)
    assert undone[0, 0, 0] == undone.min()
    assert undone[0, 0, 0] < 0
    assert np.isfinite(undone).all()


def test_labels_may_be_numbers():
    found = read_blocks(TIMES, np.array(LABELS, dtype=int))
    assert found.candidate.dtype == bool


def test_where_higher_is_better_the_reciprocal_is_the_cost():
    found = read_blocks(TIMES, LABELS, "higher")
    np.testing.assert_allclose(found.logs[:, :, 0], np.log(1 / np.array(TIMES)))


def test_every_order_is_drawn_equally_often(rng):
    labels = random_labels(60_000, rng)
    codes, counts = np.unique(labels @ [8, 4, 2, 1], return_counts=True)
    assert codes.tolist() == [3, 5, 6, 9, 10, 12]
    assert np.abs(counts - 10_000).max() < 4 * np.sqrt(10_000 * 5 / 6)
