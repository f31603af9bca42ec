"""A study for people: its numbers and sentences, in the terminal and on pages."""

import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.analysis.async_study import view
from orbax_bench_core.analysis.async_study.model import Ratio
from orbax_bench_core.analysis.async_study.view import study_document
from orbax_bench_core.document import print_document, to_html, to_markdown
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


def test_a_row_has_every_column(study):
    cells = view.size_row(study.series[0].sizes[0])
    assert len(cells) == len(view.HEADINGS)
    assert cells[:4] == ("1000000", "1M", "1.91 MiB", "6")
    assert cells[4] == "120 ms [118, 122]"


def test_the_headline_tells_the_smallest_and_the_largest(study):
    assert view.headline(study) == (
        "Saving in the background took 57 % off the blocked time at 1M parameters and 90 % at 1B "
        "parameters."
    )


def test_lines_say_their_speeds_their_distance_and_what_they_are_not(study):
    first, limit, last = view.fit_lines(study.series[0])
    assert "100 ms and its bytes at 95.4 MiB/s" in first
    assert "root mean square" in first
    assert "goes to 90 % for large checkpoints" in limit
    assert "not a forecast" in last


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
def printed():
    """Returns what is printed of a study."""

    def of(study, width=300):
        file = io.StringIO()
        print_document(study_document(study), Console(file=file, width=width))
        return file.getvalue()

    return of


def test_names_are_shown_as_they_are(printed, eventful):
    text = printed(eventful)
    assert "|[red]&amp;" in text
    assert "note: save_restore[" in text


def test_a_narrow_terminal_has_the_blocked_times_alone(printed, study):
    heading = printed(study, width=80).splitlines()[1]
    assert heading.split("  ")[0].strip() == "parameters"
    assert "total" not in heading


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
