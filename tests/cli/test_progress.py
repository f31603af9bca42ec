"""A run while it goes on."""

import datetime
import io

import pytest
from rich.console import Console

from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.execute import Progress, Retry
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over

NOON = datetime.datetime(2026, 1, 1, 13, 2, 11, tzinfo=datetime.UTC)


@pytest.fixture
def show(make_point):
    """Returns what is printed of repeats, before each of which the clock goes on for a minute."""

    def run(*happened, verbose=False, total=10, **terminal):
        file, now = io.StringIO(), [0.0]
        console = Console(
            file=file, width=80, get_time=lambda: now[0], get_datetime=lambda: NOON, **terminal
        )
        with ProgressReport(console, total=total, verbose=verbose) as report:
            for one in happened:
                now[0] += 60
                known = isinstance(one, Retry)
                report(one if known else Progress(point=make_point(label="a=[1]"), **one))
        return file.getvalue()

    return run


def test_a_repeat_that_passed_is_one_line_with_its_times(show, make_record):
    repeat = repeat_over({0: make_record(times={"save": 0.5, "load": 2.0})}, 1)
    assert show({"index": 3, "repeat": repeat}) == (
        "13:02:11  1/10 ✓ save_restore[a=[1]] repeat 3: save 500 ms, load 2 s\n"
    )


def test_the_time_left_is_told_by_what_was_measured_now(show, make_record):
    repeat = repeat_over({0: make_record()}, 1)
    before = [{"index": index, "repeat": repeat, "reused": True} for index in range(4)]
    new = [{"index": index, "repeat": repeat} for index in range(4, 7)]
    counts = [line.split(" ✓")[0] for line in show(*before, *new).splitlines()]
    assert counts == ["13:02:11  5/10", "13:02:11  6/10, 4 min left", "13:02:11  7/10, 3 min left"]


def test_a_log_that_was_quiet_for_long_says_how_far_it_is(show):
    assert show({"index": 3}) == "13:02:11  0/10: repeat 3 save_restore[a=[1]]\n"


def test_times_are_those_of_the_slowest_host(show, make_record):
    hosts = {host: make_record(host=host, times={"save": 1.0 + host}) for host in range(2)}
    text = show({"index": 0, "repeat": repeat_over(hosts, 2)})
    assert "repeat 0: save 2 s\n" in text


def test_a_repeat_that_failed_says_why(show, make_record):
    error = ErrorInfo(type="ValueError", message="[no]")
    repeat = repeat_over({0: make_record(status="failed", error=error)}, 1)
    text = show({"index": 0, "repeat": repeat})
    assert "✗ save_restore[a=[1]] repeat 0: failed: ValueError: [no]\n" in text


def test_a_repeat_of_an_earlier_run_is_counted_and_not_shown(show, make_record):
    assert show({"index": 0, "repeat": repeat_over({0: make_record()}, 1), "reused": True}) == ""


@pytest.mark.parametrize(("index", "what"), [(None, "warm-up"), (4, "repeat 4")])
def test_verbose_shows_what_begins(show, index, what):
    text = show({"index": index}, verbose=True)
    assert text.endswith(f"13:02:11 ... save_restore[a=[1]] {what}\n")


def test_a_try_that_is_made_again_is_a_line_with_its_reason(show, make_point):
    reason = "Frozen: host 1 [h] has been stopped"
    text = show(Retry(point=make_point(label="a=[1]"), index=3, reason=reason, left=1))
    assert text == f"13:02:11 ↻ save_restore[a=[1]] repeat 3 is tried again: {reason}\n"


def test_a_terminal_shows_what_runs_in_one_line_and_keeps_whole_lines(show, make_record):
    error = ErrorInfo(type="ValueError", message="long " * 40 + "end")
    failed = repeat_over({0: make_record(status="failed", error=error)}, 1)
    terminal = {"force_terminal": True, "color_system": None, "total": 120}
    text = show({"index": 0, "repeat": failed}, {"index": 1}, **terminal)
    assert "  1/120 ✗ save_restore[a=[1]] repeat 0: failed: ValueError: " in text
    assert "long end\n" in text
    assert "repeat 1 save_restore[a=[1]]" in text
