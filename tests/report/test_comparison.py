"""A comparison as Markdown."""

import re

import pytest

from orbax_bench_core.compare.ratios import NO_VERDICT, compare
from orbax_bench_core.report.comparison import comparison_markdown


@pytest.fixture
def page(make_record, make_point):
    before = make_record(make_point(options={"a": 1}), times={"save|all": 2.0, "load": 0.0})
    now = make_record(make_point(options={"a": 1}), times={"save|all": 3.0, "load": 1.0})
    gone = make_record(make_point(options={"a": 2}, label="gone"), times={"save": 1.0})
    new = make_record(make_point(options={"a": 3}, label="new"), times={"save": 1.0})
    return comparison_markdown(compare([before, gone], [now, new]))


def test_it_says_that_it_is_no_verdict(page):
    assert NO_VERDICT in page


@pytest.mark.parametrize("word", ["REGRESSION", "PASS", "INCONCLUSIVE"])
def test_it_gives_no_verdict(page, word):
    assert word not in page


def test_each_point_is_a_table_of_its_operations(page, make_point):
    assert f"## save_restore[use_ocdbt=true] `{make_point(options={'a': 1}).id}`" in page
    assert r"| save\|all | 2 s | – | 3 s | – | 1.500 |" in page


def test_an_operation_without_ratio_has_a_dash(page):
    assert "| load | 0 µs | – | 1 s | – | – |" in page


def test_every_row_has_the_columns_of_the_heading(page):
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}


@pytest.mark.parametrize(
    "line",
    ["Only in the baseline: save_restore[gone] ", "Only in the candidate: save_restore[new] "],
)
def test_points_of_one_run_only_are_listed(page, line):
    assert line in page


def test_runs_without_a_common_point_say_so(make_record, make_point):
    one, other = (make_record(make_point(options={"a": a}), times={"save": 1.0}) for a in (1, 2))
    page = comparison_markdown(compare([one], [other]))
    assert "No point is in both runs: nothing can be compared." in page
