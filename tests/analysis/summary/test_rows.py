"""Rows of an operations table."""

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.view import OPERATION_HEADINGS, operation_cells
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
