"""Rows of an operations table."""

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.tables import (
    NO_EXTRA,
    OPERATION_HEADINGS,
    operation_cells,
    point_tables,
)
from orbax_bench_core.measure import TIME, Sample, tail_of_steps
from orbax_bench_core.records import repeats_of


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
