"""A comparison while it goes on."""

import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.cli.live_verdicts import LiveVerdicts
from orbax_bench_core.cli.pace import Clock
from orbax_bench_core.config import GateConfig
from orbax_bench_core.execute import Progress, Retry
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over
from tests.support.verdicts import eventful, make_operation, make_report, make_verdicts  # noqa: F401 - fixtures


class Steady(Clock):
    """A clock of which every look is six seconds after the one before."""

    now = 0.0

    def seconds(self):
        self.now += 6
        return self.now

    def stamp(self):
        return "13:02:11"


GATE = GateConfig(looks=(10, 20))


@pytest.fixture(scope="module")
def points(make_point):
    return [make_point(options={"a": a}, label=f"a={a}") for a in range(3)]


@pytest.fixture
def judge(make_operation, make_verdicts, points):
    """Builds the verdict of one of the points."""

    def build(index, *operations, **fields):
        operations = operations or (make_operation(),)
        point = points[index]
        fields.setdefault("settled", all(one.verdict.settled for one in operations))
        return make_verdicts(point.name, *operations, point_id=point.id, **fields)

    return build


@pytest.fixture
def undecided(make_operation):
    def build(name="save", ratio=1.06, **verdict):
        return make_operation(name, "INCONCLUSIVE", ratio, verdict={"settled": False, **verdict})

    return build


@pytest.fixture
def log(points):
    """Returns what is printed where there is no terminal."""

    def show(happen, **options):
        file = io.StringIO()
        console = Console(file=file, width=80)
        with LiveVerdicts(console, points, GATE, clock=Steady(), **options) as live:
            happen(live)
        lines = file.getvalue().splitlines(keepends=True)
        assert all(line.startswith("13:02:11 ") for line in lines)
        return "".join(line.removeprefix("13:02:11 ") for line in lines)

    return show


class Terminal:
    """A comparison that is shown on a terminal."""

    def __init__(self, points, *, width=100, height=20, **options):
        self.file = io.StringIO()
        self._size = {"width": width, "height": height}
        console = Console(file=self.file, force_terminal=True, **self._size)
        self.live = LiveVerdicts(console, points, GATE, **options)

    def screen(self):
        """Returns the lines that follow the comparison at this moment."""
        console = Console(file=io.StringIO(), color_system=None, **self._size)
        console.print(self.live._live.renderable)
        return console.file.getvalue().splitlines()

    def kept(self):
        """Returns the lines that stay, each of which has a verdict."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self.file.getvalue())
        return [line for line in plain.splitlines() if re.match(r"[✗✓?] [A-Z]+ \d+/\d+ ", line)]


def test_a_look_is_one_line_in_a_log(log, judge, undecided, points):
    verdict = judge(0, undecided("load", 1.05), undecided("save", 1.06, low=0.95, high=1.17))
    assert log(lambda live: live.judged(verdict)) == (
        f"? INCONCLUSIVE 20/20 save [0.950–1.170] 1.060x {points[0].name}\n"
    )


def test_operations_are_those_that_were_measured_although_times_were_settled_before(
    log, judge, undecided
):
    verdict = judge(0, undecided(operations=10), blocks=10)
    assert log(lambda live: live.judged(verdict)).startswith("? INCONCLUSIVE 20/20 save")


def test_every_look_is_a_line_in_a_log(log, judge, undecided):
    text = log(
        lambda live: [
            live.judged(judge(0, undecided())),
            live.judged(judge(1)),
            live.judged(judge(0)),
        ]
    )
    assert [line.split()[1] for line in text.splitlines()] == ["INCONCLUSIVE", "PASS", "PASS"]


def test_a_failed_point_says_why(log, judge, undecided):
    verdict = judge(0, undecided(), failed=True, reason="the candidate failed: [no]")
    assert log(lambda live: live.judged(verdict)).endswith(": the candidate failed: [no]\n")


def test_after_a_block_it_says_how_long_a_verdict_may_take(log, points, make_record):
    repeat = repeat_over({0: make_record(times={"save": 0.5})}, 1)

    def happen(live):
        for index in range(8):
            ended = {"index": index, "arm": "baseline", "block": index // 4, "repeat": repeat}
            live(Progress(point=points[0], **ended))

    # 3 points x 10 and x 20 operations per arm, less 2 of one, of 6 s each in 2 arms
    said = "about 6 min to the first look at every point, 12 min at most where times decide\n"
    assert log(happen) == said


def test_operations_are_no_lines_in_a_log(log, points):
    assert log(lambda live: live.operation(points[0].id, "baseline", 0)) == ""


def test_a_repeat_that_fails_is_a_line(log, points, make_record):
    record = make_record(status="failed", error=ErrorInfo(type="ValueError", message="[no]"))
    ended = Progress(
        point=points[0], index=1, arm="candidate", block=0, repeat=repeat_over({0: record}, 1)
    )
    assert log(lambda live: live(ended)) == (
        f"failed {points[0].name} candidate, block 0: ValueError: [no]\n"
    )


def test_a_try_that_is_made_again_is_a_line(log, points):
    retry = Retry(point=points[0], index=5, arm="candidate", block=1, reason="[no]", left=1)
    assert log(lambda live: live(retry)) == (
        f"↻ {points[0].name} candidate, block 1 repeat 5 is tried again: [no]\n"
    )


@pytest.mark.parametrize("verbose", [True, False])
def test_a_repeat_that_passes_is_a_line_when_asked_for(log, points, make_record, verbose):
    repeat = repeat_over({0: make_record(times={"save": 0.5})}, 1)
    ended = Progress(point=points[0], index=0, arm="baseline", block=0, repeat=repeat)
    text = log(lambda live: live(ended), verbose=verbose)
    line = f"passed {points[0].name} baseline, block 0: save 500 ms\n"
    assert text == (line if verbose else "")


def test_a_repeat_of_an_earlier_run_is_no_line(log, points, make_record):
    repeat = repeat_over({0: make_record(times={"save": 0.5})}, 1)
    ended = Progress(point=points[0], index=0, arm="baseline", block=0, repeat=repeat, reused=True)
    assert log(lambda live: live(ended), verbose=True) == ""


def test_a_terminal_has_a_line_per_point_and_what_runs_now(points):
    terminal = Terminal(points)
    with terminal.live as live:
        live.operation(points[1].id, "candidate", 11)
        lines = terminal.screen()
    assert [line.split() for line in lines[:3]] == [
        ["…", "no", "look", "yet", "0/20", points[0].name],
        ["…", "no", "look", "yet", "5/20", points[1].name],
        ["…", "no", "look", "yet", "0/20", points[2].name],
    ]
    assert lines[3] == f"now: candidate, block 2, operation 4 of 4: {points[1].name}"
    assert lines[4].startswith("0 of 3 points are done")


def test_progress_is_shown_as_operations(points, make_record):
    terminal = Terminal(points)
    repeat = repeat_over({0: make_record()}, 1)
    with terminal.live as live:
        live(Progress(point=points[0], index=3, arm="baseline", block=0, repeat=repeat))
        assert terminal.screen()[0].split()[4] == "2/20"
        live(Progress(point=points[0], index=4, arm="baseline", block=1))
        assert "now: baseline, block 1, operation 1 of 4" in "\n".join(terminal.screen())
        live(Progress(point=points[1], index=None, arm="baseline"))
        assert f"now: baseline, warm-up: {points[1].name}" in "\n".join(terminal.screen())


def test_a_line_shows_the_verdict_so_far(points, judge, undecided):
    terminal = Terminal(points)
    with terminal.live as live:
        live.judged(judge(0, undecided(low=0.95, high=1.17, operations=10), blocks=5))
        line = terminal.screen()[0]
        assert terminal.kept() == []
    assert re.split(r"\s{2,}", line.strip()) == [
        "? INCONCLUSIVE",
        "10/20",
        "save [0.950–1.170] 1.060x",
        points[0].name,
    ]


@pytest.mark.parametrize("word", ["PASS", "REGRESSION"])
def test_a_point_with_its_verdict_leaves_its_line_above(points, judge, make_operation, word):
    terminal = Terminal(points)
    with terminal.live as live:
        live.judged(judge(0, make_operation("save", word, 1.0)))
        lines = terminal.screen()
        assert [line.split()[1] for line in terminal.kept()] == [word]
    assert not any(points[0].name in line for line in lines)
    assert any("1 of 3 points are done" in line for line in lines)


def test_a_point_that_used_up_its_looks_is_done(points, judge, undecided):
    terminal = Terminal(points)
    with terminal.live as live:
        live.judged(judge(0, undecided(look=len(GATE.looks) - 1), settled=True))
        assert [line.split()[1] for line in terminal.kept()] == ["INCONCLUSIVE"]


def test_what_was_judged_stays_when_it_is_interrupted(points, judge, undecided):
    terminal = Terminal(points)
    with pytest.raises(KeyboardInterrupt), terminal.live as live:
        live.judged(judge(1, undecided()))
        raise KeyboardInterrupt
    assert len(terminal.kept()) == 1


def test_lines_fit_a_narrow_terminal_and_names_keep_what_they_differ_in(
    make_point, make_operation, make_verdicts
):
    long = [
        make_point(options={"a": a}, label=f"a_rather_long_option={a},{'x' * 60}") for a in range(3)
    ]
    terminal = Terminal(long, width=80)
    with terminal.live as live:
        for point in long:
            open_ = make_operation("save_blocking", "INCONCLUSIVE", verdict={"settled": False})
            live.judged(make_verdicts(point.name, open_, point_id=point.id))
            live.operation(point.id, "baseline", 47)
        lines = terminal.screen()
    assert max(map(len, lines)) <= 80
    ends = [line.split()[-1] for line in lines[:3]]
    assert [end[-7:] for end in ends] == ["tion=0…", "tion=1…", "tion=2…"]


def test_many_points_leave_room_for_what_runs(make_point):
    many = [make_point(options={"a": a}, label=f"a={a}") for a in range(200)]
    terminal = Terminal(many, height=12)
    with terminal.live as live:
        live.operation(many[150].id, "baseline", 0)
        lines = terminal.screen()
    assert len(lines) <= 12
    assert any(line.endswith(many[150].name) and "0/20" in line for line in lines)
    assert "… and 192 more points" in lines


def test_names_are_no_markup(make_point):
    points = [make_point(label="[red]x[/red]")]
    terminal = Terminal(points)
    with terminal.live as live:
        live.operation(points[0].id, "baseline", 0)
        assert "[[red]x[/red]]" in terminal.screen()[0]


def test_no_points_at_all_are_shown():
    terminal = Terminal([])
    with terminal.live:
        assert any("0 of 0 points are done" in line for line in terminal.screen())


def test_failed_attempts_are_counted_as_they_come(points, make_record):
    terminal = Terminal(points)
    record = make_record(status="failed", error=ErrorInfo(type="OSError", message="no"))
    with terminal.live as live:
        for index in (5, 6):
            repeat = repeat_over({0: record}, 1)
            live(Progress(point=points[0], index=index, arm="candidate", block=1, repeat=repeat))
        assert "(failed: candidate 2)" in terminal.screen()[0]


def test_a_verdict_that_other_things_than_time_decided_says_so(log, judge, undecided):
    verdict = judge(0, undecided(), endpoint="stalls")
    assert log(lambda live: live.judged(verdict)).endswith(": decided by stalls\n")
