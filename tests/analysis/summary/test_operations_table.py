import pytest

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.tables import ExtraColumns, headings, point_tables
from orbax_bench_core.measure import BLOCKED, LOST, LOST_STEPS, TIME, Sample
from orbax_bench_core.records import repeats_of


@pytest.fixture
def save(make_record):
    return summarize(repeats_of([make_record(times={"save": 2.0})]))


@pytest.fixture
def extra(save):
    [operation] = save.operations
    key = (operation.time.point_id, "save")
    return ExtraColumns(
        headings=("limit", "of limit"),
        cells={key: ("write + fsync", "50 %")},
        notes={key: "It dominates."},
        legend="Limit: the least.",
    )


def test_without_extra_columns_a_row_has_the_common_ones(save):
    [table] = point_tables(save, ExtraColumns())
    assert len(table.rows[0]) == len(headings(ExtraColumns()))


def test_extra_columns_stand_last(save, extra):
    [table] = point_tables(save, extra)
    assert headings(extra)[-2:] == ("limit", "of limit")
    assert table.rows[0][-2:] == ("write + fsync", "50 %")


def test_an_operation_without_cells_of_them_has_dashes(save):
    [table] = point_tables(save, ExtraColumns(headings=("limit",)))
    assert table.rows[0][-1] == "–"


def test_a_note_on_an_operation_is_a_remark(save, extra):
    [table] = point_tables(save, extra)
    assert [remark.text for remark in table.remarks] == ["save: It dominates."]


def test_what_a_save_cost_the_training_is_a_remark(make_record):
    samples = (
        Sample("save", 0, TIME, 1.0, "s"),
        Sample("save", 0, LOST.name, 0.25, "s"),
        Sample("save", 0, LOST_STEPS.name, 12.5, "count"),
        Sample("save", 0, BLOCKED.name, 0.01, "s"),
    )
    [table] = point_tables(summarize(repeats_of([make_record(samples=samples)])), ExtraColumns())
    assert [remark.text for remark in table.remarks] == [
        "save: cost the training 250 ms (12.5 steps), of which it stood still for 10 ms"
    ]
