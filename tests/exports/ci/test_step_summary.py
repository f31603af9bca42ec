"""Summary page of a job of GitHub Actions."""

import pytest

from orbax_bench_core.exports.ci import append_step_summary


def test_without_the_variable_nothing_is_written():
    assert not append_step_summary("text", {})
    assert not append_step_summary("text", {"GITHUB_STEP_SUMMARY": ""})


def test_text_is_added_to_what_is_there(tmp_path):
    page = tmp_path / "summary"
    for text in ("# first\n", "# second"):
        assert append_step_summary(text, {"GITHUB_STEP_SUMMARY": str(page)})
    assert page.read_text() == "# first\n\n# second\n\n"


def test_more_than_github_shows_is_cut_between_characters(tmp_path):
    page = tmp_path / "summary"
    append_step_summary("–" * 500_000, {"GITHUB_STEP_SUMMARY": str(page)})
    data = page.read_bytes()
    assert len(data) <= 1024 * 1024
    assert data.decode().endswith("the rest is in verdicts.md of the run directory.\n")


def test_a_page_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(OSError, match="summary"):
        append_step_summary("text", {"GITHUB_STEP_SUMMARY": str(tmp_path / "none" / "summary")})
