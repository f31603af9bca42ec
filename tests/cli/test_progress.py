"""A run while it goes on."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.cli.pace import Clock
from orbax_bench_core.cli.progress import ProgressReport
from orbax_bench_core.execute import Progress, Retry
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over


class Steady(Clock):
    """A clock of which every look is half a minute after the one before."""

    now = 0.0

    def seconds(self):
        self.now += 30
        return self.now

    def stamp(self):
        return "13:02:11"


@pytest.fixture
def show(make_point):
    """Returns the report of what happened, and what it printed."""

    def run(*happened, verbose=False):
        file = io.StringIO()
        console = Console(file=file, width=80)
        with ProgressReport(console, total=10, verbose=verbose, clock=Steady()) as report:
            for one in happened:
                report(Progress(point=make_point(label="a=[1]"), **one))
        return report, file.getvalue()

    return run


def test_a_repeat_that_passed_is_one_line_with_its_times(show, make_record):
    repeat = repeat_over({0: make_record(times={"save": 0.5, "load": 2.0})}, 1)
    _, text = show({"index": 3, "repeat": repeat})
    assert text == (
        "13:02:11  1/10, 4 min left ✓ save_restore[a=[1]] repeat 3: save 500 ms, load 2 s\n"
        "13:02:11 the first round is done; about 4 min left\n"
    )


def test_times_are_those_of_the_slowest_host(show, make_record):
    hosts = {host: make_record(host=host, times={"save": 1.0 + host}) for host in range(2)}
    _, text = show({"index": 0, "repeat": repeat_over(hosts, 2)})
    assert "repeat 0: save 2 s\n" in text


def test_a_repeat_that_failed_says_why(show, make_record):
    error = ErrorInfo(type="ValueError", message="[no]")
    repeat = repeat_over({0: make_record(status="failed", error=error)}, 1)
    _, text = show({"index": 0, "repeat": repeat})
    assert "✗ save_restore[a=[1]] repeat 0: failed: ValueError: [no]\n" in text


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
    assert text == f"13:02:11 ... save_restore[a=[1]] {what}\n"


def test_verbose_shows_what_was_done_before(show, make_record):
    happened = {"index": 0, "repeat": repeat_over({0: make_record()}, 1), "reused": True}
    _, text = show(happened, verbose=True)
    assert text.startswith("13:02:11  1/10 ✓ save_restore[a=[1]] repeat 0: ")


def test_a_try_that_is_made_again_is_a_line_with_its_reason(make_point):
    file = io.StringIO()
    console = Console(file=file, width=80)
    with ProgressReport(console, total=10, verbose=False, clock=Steady()) as report:
        reason = "Frozen: host 1 [h] has been stopped"
        report(Retry(point=make_point(label="a=[1]"), index=3, reason=reason, left=1))
    assert report.ended == 0
    assert file.getvalue() == f"13:02:11 ↻ save_restore[a=[1]] repeat 3 is tried again: {reason}\n"


@pytest.fixture
def terminal(make_point, make_record):
    """Shows repeats of two points with long names on 80 columns; returns the bar and the lines."""
    points = [make_point(label=f"{'checkpoint=llama-8b,' * 4}use_ocdbt={n}") for n in (0, 1)]

    def run(*happened):
        file = io.StringIO()
        console = Console(file=file, width=80, force_terminal=True, color_system=None)
        names = [point.name for point in points]
        report = ProgressReport(console, total=120, verbose=False, names=names, clock=Steady())
        for which, one in happened:
            report(Progress(point=points[which], **one))
        shown = Console(file=io.StringIO(), width=200, color_system=None)
        shown.print(report._bar.get_renderable())
        return shown.file.getvalue().rstrip(), file.getvalue().splitlines()

    return run


def test_a_terminal_of_80_columns_shows_count_time_left_and_what_tells_the_point(
    terminal, make_record
):
    times = {"save_blocking": 0.01, "save_background": 0.5, "save": 0.51, "load": 0.2}
    repeat = repeat_over({0: make_record(times=times)}, 1)
    bar, lines = terminal((0, {"index": 0, "repeat": repeat}), (1, {"index": 0}))
    assert bar.startswith("  1/120, 60 min left ")
    assert bar.endswith("use_ocdbt=1] repeat 0")
    assert len(bar) <= 80
    (line,) = lines
    assert line.startswith("  1/120 ✓ ")
    assert line.endswith("use_ocdbt=0] repeat 0: save 510 ms, load 200 ms")
    assert len(line) <= 80


def test_a_reason_is_never_cut(terminal, make_record):
    error = ErrorInfo(type="ValueError", message="long " * 40 + "end")
    repeat = repeat_over({0: make_record(status="failed", error=error)}, 1)
    _, lines = terminal((0, {"index": 0, "repeat": repeat}))
    assert lines[0].endswith("long end")


def test_what_was_done_before_says_nothing_of_the_pace(show, make_record):
    before = {"index": 0, "repeat": repeat_over({0: make_record()}, 1), "reused": True}
    new = {"index": 1, "repeat": repeat_over({0: make_record()}, 1)}
    report, text = show(*[before] * 4, new)
    assert report.ended == 5
    assert text.startswith("13:02:11  5/10, 2 min left ✓")
