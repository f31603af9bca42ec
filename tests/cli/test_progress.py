"""A run while it goes on."""

import datetime
import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.execute import Progress, Retry
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over

NOON = datetime.datetime(2026, 1, 1, 13, 2, 11, tzinfo=datetime.UTC)


@pytest.fixture
def show(make_point):
    """Returns the output about repeats, before each of which the clock goes on."""

    def run(*happened, verbose=False, total=10, step_s=60, **terminal):
        file, now = io.StringIO(), [0.0]
        console = Console(
            file=file, width=80, get_time=lambda: now[0], get_datetime=lambda: NOON, **terminal
        )
        with ProgressReport(console, total=total, verbose=verbose) as report:
            for one in happened:
                now[0] += step_s
                known = isinstance(one, Retry)
                report(one if known else Progress(point=make_point(label="a=[1]"), **one))
        return file.getvalue()

    return run


def test_a_log_gets_a_line_every_30_s_with_what_is_known_and_the_time_left(show, make_record):
    """The median so far; what an earlier run has measured counts, but for the pace."""
    took = [repeat_over({0: make_record(times={"save": each / 10})}, 1) for each in range(1, 8)]
    reused = [{"index": index, "repeat": took[index], "reused": True} for index in range(4)]
    new = [{"index": index, "repeat": took[index]} for index in range(4, 7)]
    assert show(*reused, *new, step_s=15).splitlines() == [
        "13:02:11  2/10: saves 150 ms",
        "13:02:11  4/10: saves 250 ms",
        "13:02:11  6/10, 1 min left: saves 350 ms",
    ]


def test_a_line_names_what_runs_and_the_slowest_host_makes_the_time(show, make_record):
    hosts = {host: make_record(host=host, times={"save": 1.0 + host}) for host in range(2)}
    text = show({"index": 0, "repeat": repeat_over(hosts, 2)}, {"index": 1})
    assert text.endswith("13:02:11  1/10: saves 2 s; repeat 1 save_restore[a=[1]]\n")


def test_verbose_has_a_line_for_each_repeat(show, make_record):
    repeat = repeat_over({0: make_record(times={"save": 0.5, "load": 2.0})}, 1)
    said = "13:02:11  1/10 ✓ save_restore[a=[1]] repeat 3: saves 500 ms, loads 2 s\n"
    assert show({"index": 3, "repeat": repeat}, verbose=True) == said


def test_a_repeat_that_failed_says_why(show, make_record):
    error = ErrorInfo(type="ValueError", message="[no]")
    repeat = repeat_over({0: make_record(status="failed", error=error)}, 1)
    text = show({"index": 0, "repeat": repeat})
    assert "✗ save_restore[a=[1]] repeat 0: failed: ValueError: [no]\n" in text


def test_a_try_that_is_made_again_is_a_line_with_its_reason(show, make_point):
    reason = "Frozen: host 1 [h] has been stopped"
    text = show(Retry(point=make_point(label="a=[1]"), index=3, reason=reason, left=1))
    assert text == f"13:02:11 ↻ save_restore[a=[1]] repeat 3 is tried again: {reason}\n"


def test_a_terminal_shows_what_runs_in_one_line_and_keeps_whole_lines(show, make_record):
    error = ErrorInfo(type="ValueError", message="long " * 40 + "end")
    failed = repeat_over({0: make_record(status="failed", error=error)}, 1)
    terminal = {"force_terminal": True, "color_system": None, "total": 120}
    passed = repeat_over({0: make_record(times={"save": 0.5})}, 1)
    happened = ({"index": 0, "repeat": failed}, {"index": 1, "repeat": passed}, {"index": 2})
    text = show(*happened, **terminal)
    assert "  1/120 ✗ save_restore[a=[1]] repeat 0: failed: ValueError: " in text
    assert "long end\n" in text
    assert re.search(
        r"  2/120, 2.0 h left \S* *saves 500 ms; repeat 2 save_restore\[a=\[1\]\]", text
    )
    assert "✓" not in text
