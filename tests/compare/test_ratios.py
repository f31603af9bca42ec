"""Two runs side by side: matched by id, listed when unmatched, and no verdict."""

import pytest

from orbax_bench_core.compare.ratios import NO_VERDICT, compare


@pytest.fixture
def save_times(make_record, make_point):
    """Records of save times by option value: `save_times({1: [0.5, 0.7]})`."""

    def build(times, label="a"):
        return [
            make_record(make_point(options={"a": a}, label=label), repeat, times={"save": time})
            for a, found in times.items()
            for repeat, time in enumerate(found)
        ]

    return build


def test_a_ratio_is_that_of_the_medians(save_times):
    (row,) = compare(save_times({1: [1.0, 2.0, 9.0]}), save_times({1: [3.0, 3.0, 1.0]})).ratios
    assert (row.baseline.median, row.candidate.median, row.ratio) == (2.0, 3.0, 1.5)


def test_a_baseline_that_took_no_time_has_no_ratio(save_times):
    (row,) = compare(save_times({1: [0.0]}), save_times({1: [1.0]})).ratios
    assert row.ratio is None


def test_points_are_matched_by_id_whatever_they_are_called(save_times):
    comparison = compare(save_times({1: [1.0]}, "old name"), save_times({1: [1.0]}, "new name"))
    assert [row.point for row in comparison.ratios] == ["save_restore[new name]"]


def test_points_of_one_name_and_different_ids_are_not_matched(save_times):
    comparison = compare(save_times({1: [1.0]}), save_times({True: [1.0]}))
    assert comparison.ratios == ()
    assert len(comparison.only_baseline) == len(comparison.only_candidate) == 1


def test_what_only_one_run_has_is_listed_by_name_and_id(save_times, make_point):
    comparison = compare(save_times({1: [1.0], 2: [1.0]}), save_times({1: [1.0], 3: [1.0]}))
    names = [
        [found.point for found in unmatched]
        for unmatched in (comparison.only_baseline, comparison.only_candidate)
    ]
    ids = [make_point(options={"a": a}).id for a in (2, 3)]
    assert names == [[f"save_restore[a] {id_}"] for id_ in ids]


def test_what_is_in_both_runs_is_not_listed(save_times):
    comparison = compare(save_times({1: [1.0]}), save_times({1: [1.0]}))
    assert comparison.only_baseline == comparison.only_candidate == ()


def test_only_measured_repeats_are_compared(save_times, make_record, make_point):
    warmup = make_record(make_point(options={"a": 1}), times={"save": 99.0}, warmup=True)
    (row,) = compare(save_times({1: [1.0]}), [warmup, *save_times({1: [1.0]})]).ratios
    assert row.ratio == 1.0


def test_operations_are_compared_one_by_one(make_record):
    before = make_record(times={"save": 1.0, "load": 2.0})
    now = make_record(times={"load": 4.0, "verify": 1.0})
    assert [(row.operation, row.ratio) for row in compare([before], [now]).ratios] == [
        ("load", 2.0)
    ]


def test_it_says_that_it_is_no_verdict():
    assert "no verdict" in NO_VERDICT
