"""Summary page of a job of GitHub Actions."""

import pytest

from orbax_bench_core.exports.ci import append_step_summary


def test_text_is_added_to_what_is_there(tmp_path):
    page = tmp_path / "summary"
    for text in ("# first\n", "# second"):
        append_step_summary(text, str(page))
    assert page.read_text() == "# first\n\n# second\n\n"


def test_more_than_github_shows_is_cut_between_characters(tmp_path):
    page = tmp_path / "summary"
    append_step_summary("–" * 500_000, str(page))
    data = page.read_bytes()
    assert len(data) <= 1024 * 1024
    assert data.decode().endswith("the rest is in verdicts.md of the run directory.\n")


def test_a_page_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(OSError, match="summary"):
        append_step_summary("text", str(tmp_path / "none" / "summary"))
