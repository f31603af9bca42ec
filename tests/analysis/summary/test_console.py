"""A run's results in the terminal."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.summary.aggregate import summarize
from orbax_bench_core.analysis.summary.tables import ExtraColumns
from orbax_bench_core.analysis.summary.view import notes_document, summary_elements
from orbax_bench_core.document import Document, print_document
from orbax_bench_core.records import ErrorInfo, Run, repeats_of


@pytest.fixture
def printed():
    """Returns what a terminal of the given width shows."""

    def text(document, width=100):
        console = Console(width=width, file=io.StringIO())
        print_document(document, console)
        return console.file.getvalue()

    return text


def shown(summary):
    return Document(title="", elements=summary_elements(summary))


def test_every_operation_has_a_line_under_its_point(printed, eventful_run):
    text = printed(shown(summarize(Run(eventful_run).repeats(warmups=True))))
    lines = [line.split() for line in text.splitlines()]
    point = next(line for line in lines if line and line[0] == "save_restore[a=1]")
    assert lines[lines.index(point) + 1][:4] == ["save", "1", "500", "ms"]
    assert lines[lines.index(point) + 2][:4] == ["load", "1", "250", "ms"]


def test_in_80_columns_a_table_leaves_out_what_it_has_no_room_for(printed, eventful_run):
    extra = ExtraColumns(headings=("limit", "of limit", "vs TensorStore"))
    summary = summarize(Run(eventful_run).repeats(warmups=True))
    document = Document(title="", elements=summary_elements(summary, extra))
    narrow, wide = printed(document, 80), printed(document, 130)
    (heading,) = (line for line in narrow.splitlines() if line.startswith("  operation"))
    assert len(heading) <= 80
    assert "Not shown, because the terminal is narrow: min; report.html has all." in narrow
    assert "Not shown" not in wide
    assert all(name in wide for name in ("min", "max", *extra.headings))


def test_a_name_with_brackets_is_shown_as_it_is(printed, eventful_run):
    text = printed(shown(summarize(Run(eventful_run).repeats(warmups=True))))
    assert "save_restore[kind=<script>alert(1)</script>|[red]&amp;]" in text


def test_a_failed_point_says_how_often_and_why(printed, eventful_run):
    text = printed(shown(summarize(Run(eventful_run).repeats(warmups=True))), 200)
    failed = next(line for line in text.splitlines() if line.startswith("failed:"))
    assert failed.startswith("failed: save_restore[a=3] ")
    assert ": 1 of 1 repeats: ValueError: a|b <b>bold</b> [red]\\n" in failed


def test_a_skipped_point_says_why(printed, make_record):
    error = ErrorInfo(type="MeshDoesNotFit", message="needs 8 devices [here]")
    text = printed(shown(summarize(repeats_of([make_record(status="skipped", error=error)]))), 200)
    assert "MeshDoesNotFit: needs 8 devices [here]" in text


def test_notes_and_skipped_combinations_are_shown(printed, eventful_run):
    text = printed(notes_document(eventful_run.read_info()))
    assert text == ("note: mind [this]\nskipped: save_restore[too big [x]]: needs [8] devices\n")


def test_without_a_passed_repeat_there_is_no_table(printed, make_record):
    error = ErrorInfo(type="ValueError", message="no")
    text = printed(shown(summarize(repeats_of([make_record(status="failed", error=error)]))))
    assert "operation" not in text
