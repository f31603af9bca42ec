"""`orbax-bench history`."""

import json

import pytest

from tests.support.paired_runs import make_nightly, make_paired_run, make_separate_run  # noqa: F401


@pytest.fixture
def history(monkeypatch, orbax_bench, tmp_path):
    """Runs `orbax-bench history` with arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: orbax_bench("history", *arguments)


@pytest.mark.slow
def test_a_change_is_found_in_a_folder_of_runs(history, make_nightly):
    make_nightly([1.0] * 12 + [1.2] * 8)
    done = history(".")
    assert (done.code, done.err) == (0, "")
    assert "20 runs, 1 series. 1 of 1 ratios to a reference arm are flagged" in done.out


def test_the_page_is_written_where_it_is_asked_for(history, make_nightly, tmp_path):
    make_nightly([1.0, 1.0])
    done = history("day*", "--html", "new/history.html")
    assert f"Page: {tmp_path}/new/history.html" in done.out
    assert "<svg" in (tmp_path / "new/history.html").read_text()


def test_json_has_every_run(history, make_nightly):
    make_nightly([1.0, 1.0, 1.0])
    found = json.loads(history(".", "--json").out)
    assert [run["run_id"] for run in found["series"][0]["runs"]] == ["run000", "run001", "run002"]


def test_separate_runs_are_no_mistake(history, make_separate_run):
    done = history(make_separate_run(0).root, make_separate_run(1).root)
    assert (done.code, "Raw seconds wander" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nowhere",), "holds no run"),
        (("day*", "--significance", "0.5"), "--significance: give a number from 0.001 to 0.1"),
        (("day*", "--html", "s3://bucket/page.html"), "local paths and gs:// only"),
        (("day*", "--html", "/proc/page.html"), "--html: cannot write /proc/page.html"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(history, make_separate_run, arguments, problem):
    make_separate_run(0)
    done = history(*arguments)
    assert done.code == 2
    assert problem in done.err
    assert len(done.err.splitlines()) == 1


def test_the_help_has_an_example(history):
    assert "orbax-bench history nightly --html history.html" in history("--help").out
