"""Tables of operations, rows of repeats, and names of series."""

import pytest

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.charts import short_names, varying
from orbax_bench_core.analysis.summary.hosts import Straggler
from orbax_bench_core.analysis.summary.tables import (
    NO_EXTRA,
    OPERATION_HEADINGS,
    ExtraColumns,
    headings,
    operation_cells,
    point_tables,
    straggler_sentence,
)
from orbax_bench_core.measure import BLOCKED, LOST, LOST_STEPS, TIME, Sample, tail_of_steps
from orbax_bench_core.records import Series, repeats_of


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


def test_a_row_has_one_cell_per_heading(make_record):
    record = make_record(times={"save": 0.5}, sizes={"save": 2**30})
    (operation,) = summarize(repeats_of([record])).operations
    cells = dict(zip(OPERATION_HEADINGS, operation_cells(operation), strict=True))
    assert cells == {
        "operation": "save",
        "n": "1",
        "median": "500 ms",
        "spread": "–",
        "min": "500 ms",
        "max": "500 ms",
        "GiB/s": "2",
    }


def test_an_operation_without_throughput_has_a_dash(make_record):
    (operation,) = summarize(repeats_of([make_record(times={"save": 1.0})])).operations
    assert operation_cells(operation)[-1] == "–"


def test_a_fast_operation_has_no_exponent(make_record):
    record = make_record(times={"save": 1.0}, sizes={"save": 1300 * 2**30})
    (operation,) = summarize(repeats_of([record])).operations
    assert operation_cells(operation)[-1] == "1300"


def test_the_slowest_steps_of_a_training_stand_below_its_time(make_record):
    found = tail_of_steps([0.01] * 9 + [0.11])
    samples = [Sample("train", 0, TIME, 0.2, "s")]
    samples += [Sample("train", 0, one.metric, one.value, one.unit) for one in found]
    summary = summarize(repeats_of([make_record(samples=tuple(samples))]))
    (table,) = point_tables(summary, NO_EXTRA)
    (said,) = [remark.text for remark in table.remarks]
    assert said == (
        "train: of 10 steps, the median took 10 ms, the 99th percentile 101 ms, the longest "
        "110 ms; 50 % of their time went beyond the median"
    )


def series(*entries):
    return [one for entry in entries for one in Series.all_of(entry)]


def test_a_name_has_what_tells_it_from_others(make_point):
    points = [make_point(options={"a": a}, label=f"a={a},chunks=[1,2],ckpt=w") for a in (1, 2)]
    assert list(short_names(series(*points)).values()) == ["a=1", "a=2"]


def test_a_single_series_keeps_its_label(make_point):
    assert list(short_names(series(make_point())).values()) == ["use_ocdbt=true"]
    assert list(short_names(series(make_point(label=""))).values()) == ["save_restore"]


def test_several_benchmarks_are_named(make_point):
    other = make_point(benchmark="my.load.Load", label="x=1")
    assert list(short_names(series(make_point(label="x=1"), other)).values()) == [
        "save_restore",
        "Load",
    ]


def test_arms_differ_by_their_arm(make_point):
    pair = make_point(candidate=make_point(options={"use_ocdbt": False}))
    assert list(short_names(series(pair)).values()) == ["arm=baseline", "arm=candidate"]
    assert set(varying(series(pair))) == {"arm", "use_ocdbt"}


def test_what_varies_has_a_value_for_each(make_point):
    points = [make_point(options={"a": True, "b": 1}), make_point(options={"a": "x", "c": 2})]
    found = {name: list(values.values()) for name, values in varying(series(*points)).items()}
    assert found == {"a": ["true", "x"], "b": ["1", "–"], "c": ["–", "2"]}


def test_a_stage_is_told_with_its_share_of_what_the_slowest_host_took_more():
    found = Straggler(
        host=1, slowest=3, repeats=3, excess_s=1.0, stage="2_save/d2h_s", stage_excess_s=0.1
    )
    said = straggler_sentence("save", found)
    assert said.endswith("more than the median host, 10 % of it in 2_save/d2h_s (+100 ms)")
