"""Comparisons are counted the same whatever they are divided into."""

import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from perf.gate.cells import Cell
from perf.gate.designs import IN_TURNS, LIVES, PER_ARM_PROCESS, with_tau
from perf.gate.experiments import MOST_USES, run


def cell(kind="time", source="iid", ratio=1.0, series=20):
    return Cell(kind=kind, source=source, ratio=ratio, series=series)


def test_parts_add_up_to_the_cell():
    parts = cell(series=25).parts(10)
    assert [part.series for part, _ in parts] == [10, 10, 5]
    assert len({seed for _, seed in parts}) == 3


def test_the_number_of_comparisons_is_no_part_of_a_cells_name():
    assert cell(series=10).key == cell(series=20).key
    assert cell().key != dataclasses.replace(cell(), design=LIVES).key


def test_the_same_part_gives_the_same_tally():
    (part,) = cell().parts(20)
    assert run(part) == run(pickle.loads(pickle.dumps(part)))


@pytest.mark.parametrize(
    ("kind", "fields", "seen"),
    [
        ("stalls", {"candidate": 0.4}, "by_stalls"),
        ("stalls", {"candidate": 0.4, "sticky": True, "design": LIVES}, "regression"),
        ("failures", {"candidate": 1.0}, "regression"),
        ("point", {"candidate": 0.6}, "regression"),
        ("interval", {"ratio": 1.1}, "covered"),
        ("detectable", {"sigma": 0.1, "look": 1}, "regression"),
    ],
)
def test_other_kinds_count_what_they_show(kind, fields, seen):
    found = run((dataclasses.replace(cell(kind, series=6), **fields), 1))
    assert found.series == 6
    assert found.counts[seen] >= 3


def test_each_use_of_more_only_adds_to_what_is_decided():
    found = run((dataclasses.replace(cell("more", ratio=1.1), design=LIVES, sigma=0.2), 1))
    words = [
        [found.counts.get(f"{word} {uses}", 0) for word in ("regression", "passes", "suspected")]
        for uses in range(MOST_USES + 1)
    ]
    assert all(sum(each) == 20 for each in words)
    for before, after in itertools.pairwise(words):
        assert all(more >= less for less, more in zip(before[:2], after[:2], strict=True))
    assert words[0][2] > words[-1][2]


def test_workers_measure_forth_and_back_or_one_after_the_other():
    places = LIVES.places(2)
    assert places[0].tolist() == [[0, 7], [1, 6], [2, 5], [3, 4]]
    assert places[1, 0].tolist() == [8, 15]
    assert IN_TURNS.places(1)[0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_one_process_per_arm_has_one_offset_for_all_its_blocks():
    labels = np.array([[[True, False, True, False], [False, True, True, False]]])
    shift = with_tau(PER_ARM_PROCESS, 0.1).shift(np.random.default_rng(1), labels)
    assert len({*shift[labels].tolist()}) == len({*shift[~labels].tolist()}) == 1
