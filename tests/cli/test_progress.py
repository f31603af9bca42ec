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


class Terminated(Clock):
    """A clock that a test sets."""

    now = 0.0

    def seconds(self):
        return self.now

    def stamp(self):
        return "13:02:11"


@pytest.fixture
def counts(make_point, make_record):
    """Returns what each line says of the time left, by the points measured and when each ended."""

    def run(ends, *, total, points):
        clock, file = Terminated(), io.StringIO()
        names = [f"p{number}" for number in range(points)]
        console = Console(file=file, width=80)
        with ProgressReport(
            console, total=total, verbose=False, names=names, clock=clock
        ) as report:
            for number, end in enumerate(ends):
                clock.now = end
                point = make_point(label=f"p{number % points}")
                repeat = repeat_over({0: make_record()}, 1)
                report(Progress(point=point, index=number // points, repeat=repeat))
        counted = [line for line in file.getvalue().splitlines() if "✓" in line]
        return [line.split(" ✓")[0].removeprefix("13:02:11").strip() for line in counted]

    return run


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
        "13:02:11  1/10, up to 4 min left ✓ save_restore[a=[1]] repeat 3: save 500 ms, load 2 s\n"
    )


def test_a_first_repeat_which_also_compiles_is_no_more_than_a_bound_of_the_others(counts):
    # 200 saves of 0.1 s each, after 2 s for the worker, the warm-up and the first of them.
    assert counts([2.0, 2.1, 2.2], total=200, points=1) == [
        "1/200, up to 7 min left",
        "2/200, 20 s left",
        "3/200, 20 s left",
    ]


def test_first_repeats_of_other_points_are_counted_by_those_that_were_made(counts):
    assert counts([10.0, 20.0, 30.0, 31.0], total=6, points=3) == [
        "1/6, up to 50 s left",
        "2/6, up to 40 s left",
        "3/6, up to 30 s left",
        "4/6, 2 s left",
    ]


def test_where_every_repeat_is_the_first_of_its_point_the_first_tells_of_the_others(counts):
    assert counts([10.0, 20.0], total=3, points=3) == ["1/3, 20 s left", "2/3, 10 s left"]


def test_a_log_says_after_the_first_round_of_several_points_how_long_the_others_take(
    make_point, make_record
):
    clock, file = Terminated(), io.StringIO()
    with ProgressReport(
        Console(file=file, width=80), total=10, verbose=False, names=["a", "b"], clock=clock
    ) as report:
        for label in ("a", "b"):
            clock.now += 30
            repeat = repeat_over({0: make_record()}, 1)
            report(Progress(point=make_point(label=label), index=0, repeat=repeat))
    assert file.getvalue().endswith("13:02:11 the first round is done; up to 4 min left\n")


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
    assert bar.startswith("  1/120, up to 60 min left ")
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
    assert text.startswith("13:02:11  5/10, up to 2 min left ✓")
