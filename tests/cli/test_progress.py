"""A run while it goes on."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.execute import Progress, Retry
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over


@pytest.fixture
def show(make_point):
    """Returns the report of what happened, and what it printed."""

    def run(*happened, verbose=False):
        file = io.StringIO()
        console = Console(file=file, width=80)
        with ProgressReport(console, total=10, verbose=verbose) as report:
            for one in happened:
                report(Progress(point=make_point(label="a=[1]"), **one))
        return report, file.getvalue()

    return run


def test_a_repeat_that_passed_is_one_line_with_its_times(show, make_record):
    repeat = repeat_over({0: make_record(times={"save": 0.5, "load": 2.0})}, 1)
    _, text = show({"index": 3, "repeat": repeat})
    assert text == " 1/10 ✓ save_restore[a=[1]] repeat 3: save 500 ms, load 2 s\n"


def test_times_are_those_of_the_slowest_host(show, make_record):
    hosts = {host: make_record(host=host, times={"save": 1.0 + host}) for host in range(2)}
    _, text = show({"index": 0, "repeat": repeat_over(hosts, 2)})
    assert text.endswith("repeat 0: save 2 s\n")


def test_a_repeat_that_failed_says_why(show, make_record):
    error = ErrorInfo(type="ValueError", message="[no]")
    repeat = repeat_over({0: make_record(status="failed", error=error)}, 1)
    _, text = show({"index": 0, "repeat": repeat})
    assert text.endswith("✗ save_restore[a=[1]] repeat 0: failed: ValueError: [no]\n")


@pytest.mark.parametrize("index", [None, 0])
def test_what_begins_is_no_line_where_there_is_no_terminal(show, index):
    report, text = show({"index": index})
    assert (report.ended, text) == (0, "")


def test_a_repeat_of_an_earlier_run_is_counted_and_not_shown(show, make_record):
    report, text = show({"index": 0, "repeat": repeat_over({0: make_record()}, 1), "reused": True})
    assert (report.ended, text) == (1, "")


@pytest.mark.parametrize(("index", "what"), [(None, "warm-up"), (4, "repeat 4")])
def test_verbose_shows_what_begins(show, index, what):
    _, text = show({"index": index}, verbose=True)
    assert text == f"... save_restore[a=[1]] {what}\n"


def test_verbose_shows_what_was_done_before(show, make_record):
    happened = {"index": 0, "repeat": repeat_over({0: make_record()}, 1), "reused": True}
    _, text = show(happened, verbose=True)
    assert text.startswith(" 1/10 ✓ save_restore[a=[1]] repeat 0: ")


def test_a_try_that_is_made_again_is_a_line_with_its_reason(make_point):
    file = io.StringIO()
    with ProgressReport(Console(file=file, width=80), total=10, verbose=False) as report:
        reason = "Frozen: host 1 [h] has been stopped"
        report(Retry(point=make_point(label="a=[1]"), index=3, reason=reason, left=1))
    assert report.ended == 0
    assert file.getvalue() == f"↻ save_restore[a=[1]] repeat 3 is tried again: {reason}\n"
