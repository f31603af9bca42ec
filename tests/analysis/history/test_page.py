"""A history as a page: self-contained, escaped, with a figure per series."""

import re

import pytest

from orbax_bench_core.analysis.history import view
from orbax_bench_core.analysis.history.view import history_document
from orbax_bench_core.document import to_html
from tests.support.pages import assert_whole


@pytest.fixture
def page(once, changed):
    return once("the page of a changed history", lambda: to_html(history_document(changed)))


@pytest.mark.parametrize("name", ["changed", "separate"])
def test_the_page_is_whole_and_needs_nothing_else(request, name):
    assert_whole(to_html(history_document(request.getfixturevalue(name))))


def test_a_name_cannot_break_the_page(page):
    assert "<script>alert" not in page
    assert "kind=&lt;script&gt;alert(1)" in page


def test_each_series_has_a_figure_and_its_runs(page):
    assert page.count("<svg") == 1
    assert all(f"run{day:03}" in page for day in range(20))


def test_a_change_is_told_with_its_versions_and_runs(page):
    assert "orbax-checkpoint: 0.12.7 → 0.12.8" in page
    assert "(between run run011 and run run012)" in page


def test_the_figure_tells_the_change_in_percent(page):
    drawing = re.search(r"<svg.*?</svg>", page, re.DOTALL)[0]
    assert re.search(r">\+(?:19|20|21)[.\d]* %<", drawing)


def test_very_many_series_have_figures_only_of_the_first(changed, monkeypatch):
    monkeypatch.setattr(view, "MOST_FIGURES", 2)
    many = changed.model_copy(update={"series": changed.series * 5})
    text = to_html(history_document(many))
    assert text.count("<svg") == 2
    assert "The first 2 series have figures" in text
