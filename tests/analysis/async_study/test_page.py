"""A study as pages: self-contained, escaped, with its figure."""

import re

import pytest

from orbax_bench_core.analysis.async_study import view
from orbax_bench_core.analysis.async_study.view import study_document
from orbax_bench_core.document import to_html, to_markdown
from tests.support.pages import assert_whole


@pytest.fixture
def page(once, study):
    return once("the page of a study", lambda: to_html(study_document(study)))


@pytest.fixture
def eventful_page(once, eventful):
    return once("the page of an eventful study", lambda: to_html(study_document(eventful)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["page", "eventful_page"])
def test_the_page_is_whole_and_needs_nothing_else(request, name):
    assert_whole(request.getfixturevalue(name))


def test_a_name_cannot_break_the_page(eventful_page):
    assert "<script>alert" not in eventful_page
    assert "&lt;script&gt;alert(1)" in eventful_page


def test_the_figure_names_what_is_measured_and_what_is_documented(page):
    assert page.count("<svg") == 1
    for label in (
        "measured here, 95 % interval",
        "documented, on machines not named",
    ):
        assert label in page


def test_sizes_in_bytes_have_no_documented_marks(eventful_page):
    drawings = re.findall(r"<svg.*?</svg>", eventful_page, re.DOTALL)
    in_bytes = [drawing for drawing in drawings if ">bytes<" in drawing]
    assert len(in_bytes) == 1
    assert not any("documented" in drawing for drawing in in_bytes)


@pytest.mark.slow
def test_very_many_series_have_figures_only_of_the_first(eventful, monkeypatch):
    monkeypatch.setattr(view, "MOST_FIGURES", 1)
    text = to_html(study_document(eventful))
    assert text.count("<svg") == 1
    assert "The first 1 series have figures" in text


def test_markdown_has_a_table_of_every_size(study):
    lines = to_markdown(study_document(study)).splitlines()
    (start,) = (index for index, line in enumerate(lines) if line.startswith("| checkpoint"))
    table = lines[start : start + 6]
    assert {line.count("|") for line in table} == {11}
    assert "1B" in table[-1]
    assert lines[start + 6] == ""


def test_a_bar_in_a_name_is_no_column_of_the_markdown(eventful):
    rows = [
        line
        for line in to_markdown(study_document(eventful)).splitlines()
        if line.startswith("| kind=")
    ]
    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 11


@pytest.mark.slow
def test_notes_are_on_both_pages(eventful):
    assert "has no partner" in to_html(study_document(eventful))
    assert "has no partner" in to_markdown(study_document(eventful))
