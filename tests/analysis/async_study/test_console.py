"""A study in the terminal."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.async_study.view import study_document
from orbax_bench_core.document import print_document


@pytest.fixture
def printed():
    """Returns what is printed of a study."""

    def of(study, width=300):
        file = io.StringIO()
        print_document(study_document(study), Console(file=file, width=width))
        return file.getvalue()

    return of


def test_every_size_is_a_row(printed, study):
    rows = [line for line in printed(study).splitlines() if " MiB " in line or " GiB " in line]
    assert [row.split()[1] for row in rows] == ["1M", "10M", "100M", "1B"]


def test_names_are_shown_as_they_are(printed, eventful):
    text = printed(eventful)
    assert "|[red]&amp;" in text
    assert "note: save_restore[" in text


def test_a_narrow_terminal_has_the_blocked_times_alone(printed, study):
    heading = printed(study, width=80).splitlines()[1]
    assert heading.split("  ")[0].strip() == "parameters"
    assert "total" not in heading
