"""A comparison while it goes on."""

import datetime
import io
import re

import pytest
from rich.console import Console

from orbax_bench_core.cli.live_verdicts import LiveVerdicts
from orbax_bench_core.config import GateConfig
from orbax_bench_core.execute import Progress
from orbax_bench_core.experiments import PairJudged
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over
from tests.support.verdicts import eventful, make_operation, make_report, make_verdicts  # noqa: F401 - fixtures

NOON = datetime.datetime(2026, 1, 1, 13, 2, 11, tzinfo=datetime.UTC)
GATE = GateConfig(looks=(10, 20))


@pytest.fixture(scope="module")
def points(make_point):
    return [make_point(options={"a": a}, label=f"a={a}") for a in range(6)]


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
    """Returns the log of events, which lie `step_s` apart."""

    def show(*events, step_s=0.0, **options):
        file, now = io.StringIO(), [0.0]
        console = Console(file=file, width=80, get_time=lambda: now[0], get_datetime=lambda: NOON)
        with LiveVerdicts(console, points, GATE, **options) as live:
            for event in events:
                now[0] += step_s
                live(event)
        lines = file.getvalue().splitlines(keepends=True)
        assert all(line.startswith("13:02:11 ") for line in lines)
        return "".join(line.removeprefix("13:02:11 ") for line in lines)

    return show


@pytest.fixture
def terminal(points):
    """Returns what is on a terminal in the end, in the order in which it was drawn."""

    def show(happen, points=points):
        file = io.StringIO()
        console = Console(file=file, width=160, force_terminal=True, get_time=lambda: 0.0)
        with LiveVerdicts(console, points, GATE) as live:
            happen(live)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()).replace("\r", "\n")

    return show


def kept(text):
    """Returns the lines that stay, each of which has a verdict."""
    return [line for line in text.splitlines() if re.match(r"[✗✓?] [A-Z]+ \d+/\d+ ", line)]


def test_operations_are_those_that_were_measured_although_times_were_settled_before(
    log, judge, undecided
):
    verdict = judge(0, undecided(operations=10), blocks=10)
    assert log(PairJudged(verdict=verdict)).startswith("? INCONCLUSIVE 20/20 save_restore")


def test_a_point_is_a_line_in_a_log_when_it_is_done_or_at_the_end(log, judge, undecided):
    verdicts = (judge(0, undecided()), judge(2, undecided()), judge(1), judge(0))
    text = log(*(PairJudged(verdict=verdict) for verdict in verdicts))
    assert [line.split()[1] for line in text.splitlines()] == ["PASS", "PASS", "INCONCLUSIVE"]


def test_a_log_gets_a_line_every_30_s_with_what_the_last_look_found(log, points, judge, undecided):
    begins = Progress(point=points[0], index=3, arm="baseline", block=0)
    look = PairJudged(verdict=judge(0, undecided(low=0.95, high=1.17, operations=10), blocks=5))
    now = f"baseline, block 0, operation 4 of 4 {points[0].name}"
    first, second, _ = log(*[begins] * 3, look, *[begins] * 2, step_s=10).splitlines()
    assert first == f"0/6 points done: first look after 10 operations of each arm; {now}"
    assert second == f"0/6 points done: saves +6 % (-5 to +17 %); {now}"


def test_a_failed_point_says_why(log, judge, undecided):
    verdict = judge(0, undecided(), failed=True, reason="the candidate failed: [no]")
    assert log(PairJudged(verdict=verdict)).endswith(": the candidate failed: [no]\n")


def test_a_repeat_that_fails_is_a_line(log, points, make_record):
    record = make_record(status="failed", error=ErrorInfo(type="ValueError", message="[no]"))
    ended = Progress(
        point=points[0], index=1, arm="candidate", block=0, repeat=repeat_over({0: record}, 1)
    )
    assert log(ended) == (f"failed {points[0].name} candidate, block 0: ValueError: [no]\n")


def test_a_terminal_shows_what_runs_now(terminal, points, make_record):
    repeat = repeat_over({0: make_record()}, 1)

    def happen(live):
        live(Progress(point=points[0], index=3, arm="baseline", block=0, repeat=repeat))
        live(Progress(point=points[1], index=None, arm="baseline"))
        live._bar.refresh()
        live(Progress(point=points[1], index=11, arm="candidate", block=2))
        live._bar.refresh()

    text = terminal(happen)
    known = "0/6 points done ━━━━━━━━━━━━ first look after 10 operations of each arm; "
    assert f"{known}baseline, warm-up {points[1].name}" in text
    assert f"{known}candidate, block 2, operation 4 of 4 {points[1].name}" in text


def test_of_few_points_a_terminal_keeps_no_line_as_the_answer_follows(terminal, judge, points):
    judged = PairJudged(verdict=judge(0))
    assert not kept(terminal(lambda live: live(judged), points=points[:5]))


def test_a_look_on_a_terminal_is_no_line_until_the_end(terminal, judge, undecided):
    def happen(live):
        for _ in range(2):
            live(
                PairJudged(
                    verdict=judge(1, undecided(low=0.95, high=1.17, operations=10), blocks=5)
                )
            )

    (line,) = kept(terminal(happen))
    assert line.startswith(
        "? INCONCLUSIVE 10/20 save_restore[a=1]: saves may be slower, by up to 17 %"
    )


def test_failed_attempts_are_counted_as_they_come(log, points, judge, undecided, make_record):
    record = make_record(status="failed", error=ErrorInfo(type="OSError", message="no"))
    failed = [
        Progress(
            point=points[0],
            index=index,
            arm="candidate",
            block=1,
            repeat=repeat_over({0: record}, 1),
        )
        for index in (5, 6)
    ]
    assert "(failed: candidate 2)" in log(*failed, PairJudged(verdict=judge(0, undecided())))
