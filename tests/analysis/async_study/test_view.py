"""A study for people: its numbers and sentences, in the terminal and on pages."""

import re

import pytest

from orbax_bench_core.analysis.async_study import view
from orbax_bench_core.analysis.async_study.model import Ratio
from orbax_bench_core.analysis.async_study.view import study_document
from orbax_bench_core.document import to_html, to_markdown
from tests.support.pages import assert_whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (512, "512"),
        (1208384, "1.21M"),
        (300 * 10**6, "300M"),
        (999_700_000, "1B"),
        (340 * 10**9, "340B"),
        (10**12, "1T"),
    ],
)
def test_a_number_of_parameters(value, text):
    assert view.count(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.4, "40 %"), (0.972, "97.2 %"), (0.9997, "99.97 %"), (-0.25, "-25 %"), (1.0, "100 %")],
)
def test_a_share(ratio, text):
    assert view.percent(ratio) == text


def test_a_share_has_its_interval_where_there_is_one():
    assert view.share(Ratio(value=0.5, low=0.25, high=0.75)) == "50 % [25, 75]"
    assert view.share(Ratio(value=0.5, low=None, high=None)) == "50 %"


@pytest.mark.parametrize(
    ("fit", "line", "said"),
    [
        ({"holds": False}, {"blocking": {"worst": 0.4}}, "not to be trusted"),
        ({"holds": False}, {"background": {"flat": True}}, "where it ends is not measured"),
        ({"holds": False, "limit": None}, {"blocking": {"flat": True}}, "explain nothing"),
    ],
)
def test_lines_that_explain_little_say_so(study, fit, line, said):
    series = study.series[0]
    lines = {
        kind: getattr(series.fit, kind).model_copy(update=update) for kind, update in line.items()
    }
    changed = series.fit.model_copy(update={**fit, **lines})
    assert said in " ".join(view.fit_lines(series.model_copy(update={"fit": changed})))


def test_a_line_that_does_not_grow_has_no_speed(study):
    fit = study.series[0].fit
    flat = fit.model_copy(update={"background": fit.background.model_copy(update={"flat": True})})
    first = view.fit_lines(study.series[0].model_copy(update={"fit": flat}))[0]
    assert "Blocked, async: 50 ms and no shown growth" in first


def test_an_interval_has_the_unit_of_its_median(study):
    size = study.series[0].sizes[0]
    times = size.blocking.blocked.model_copy(update={"median": 0.5, "low": 0.25, "high": 1.5})
    kind = size.blocking.model_copy(update={"blocked": times})
    assert view.size_row(size.model_copy(update={"blocking": kind}))[4] == "500 ms [250, 1500]"


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


@pytest.mark.slow
def test_notes_are_on_both_pages(eventful):
    assert "has no partner" in to_html(study_document(eventful))
    assert "has no partner" in to_markdown(study_document(eventful))
