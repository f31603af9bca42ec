import pytest

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.view import NO_LIMITS, headings, point_tables
from orbax_bench_core.limits.share import LIMIT_HEADINGS, LimitShare, OperationLimits
from orbax_bench_core.measure.definition import TIME
from orbax_bench_core.measure.interference import BLOCKED, LOST, LOST_STEPS
from orbax_bench_core.measure.sample import Sample


@pytest.fixture
def save(make_record):
    return summarize([make_record(times={"save": 2.0})])


@pytest.fixture
def limits(save):
    share = LimitShare(probe="write_fsync", limit_s=1.0, share=0.5)
    [operation] = save.operations
    key = (operation.time.point_id, "save")
    return {key: OperationLimits(shares=(share,), overhead=1.5, first_touch="It dominates.")}


def test_without_limits_there_are_no_columns_on_limits(save):
    [table] = point_tables(save, NO_LIMITS)
    assert len(table.rows[0]) == len(headings(NO_LIMITS))
    assert not set(LIMIT_HEADINGS) & set(headings(NO_LIMITS))


def test_with_limits_each_row_says_how_near_it_comes(save, limits):
    [table] = point_tables(save, limits)
    assert headings(limits)[-3:] == LIMIT_HEADINGS
    assert table.rows[0][-3:] == ("write + fsync", "50 %", "1.50x")


def test_first_touch_that_dominates_is_a_remark(save, limits):
    [table] = point_tables(save, limits)
    assert [remark.text for remark in table.remarks] == ["save: It dominates."]


def test_what_a_save_cost_the_training_is_a_remark(make_record):
    samples = (
        Sample("save", 0, TIME, 1.0, "s"),
        Sample("save", 0, LOST.name, 0.25, "s"),
        Sample("save", 0, LOST_STEPS.name, 12.5, "count"),
        Sample("save", 0, BLOCKED.name, 0.01, "s"),
    )
    [table] = point_tables(summarize([make_record(samples=samples)]), NO_LIMITS)
    assert [remark.text for remark in table.remarks] == [
        "save: cost the training 250 ms (12.5 steps), of which it stood still for 10 ms"
    ]
