"""Metrics of both arms: every one with its medians and delta, in every view."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.verdicts import (
    compare_stored,
    compare_unpaired,
    verdicts_document,
)
from orbax_bench_core.analysis.verdicts.metrics import compare_metrics
from orbax_bench_core.config import GateConfig
from orbax_bench_core.document import print_document, to_html, to_markdown
from orbax_bench_core.records import repeats_of
from tests.support.paired_runs import (  # noqa: F401 - fixtures
    BYTES,
    HITS,
    RATE,
    arms,
    make_paired_run,
    make_separate_run,
    sample,
)

PEAK = "7_memory/host_peak_rss_mb"
QUEUE = "6_tensorstore/thread_pool_queue_s"
TIME = "0_basics/time_s"
LONG = "2_save_breakdown/background_directory_creation_s"


def printed(report, metrics="changed", width=80):
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    print_document(verdicts_document(report, metrics), console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.fixture
def compared(make_record):
    """Compares two arms, each given as one list of samples per repeat."""

    def compare(before, now):
        arms = (
            repeats_of(
                [
                    make_record(repeat=repeat, samples=tuple(samples))
                    for repeat, samples in enumerate(arm)
                ]
            )
            for arm in (before, now)
        )
        return {(each.operation, each.metric): each for each in compare_metrics(*arms)}

    return compare


@pytest.fixture
def run_of(make_record):
    """Makes the records of a run of one point, whose values are `factor` times as high."""

    def make(factor, point=None):
        samples = (
            sample(HITS, factor**5, "count", operation="save_background"),
            sample(TIME, 2 * factor, "s", operation="save_background"),
            sample(HITS, factor**5, "count"),
            sample(PEAK, 300 / 1024 * (1 + (factor > 1)), "MiB"),
            sample(QUEUE, 1e-6 if factor == 1 else 2e-3, "s"),
            sample(LONG, 3 * factor, "s"),
            sample(TIME, 4 * factor, "s"),
        )
        return [make_record(point, repeat, samples=samples) for repeat in range(3)]

    return make


@pytest.fixture
def two_runs(run_of):
    """Two runs of one point, of which the second is slower in all."""
    return compare_unpaired(run_of(1.0), run_of(3.0), GateConfig())


def test_each_metric_has_both_medians_and_the_delta(compared):
    before = [[sample(BYTES, value, "bytes")] for value in (1, 2, 30)]
    now = [[sample(BYTES, value, "bytes")] for value in (3, 3, 3)]
    found = compared(before, now)["save", BYTES]
    assert (found.baseline, found.candidate, found.delta) == (2, 3, 0.5)
    assert (found.unit, found.repeats) == ("bytes", {"baseline": 3, "candidate": 3})
    assert found.apart == pytest.approx(1 / 3)


def test_its_direction_is_that_of_the_registry(compared):
    arm = [[sample(RATE, 1.0, "GiB/s"), sample(PEAK, 1.0, "MiB"), sample(HITS, 1.0)]]
    found = compared(arm, arm)
    assert [found["save", name].better for name in (RATE, PEAK)] == ["higher", "lower"]


def test_an_occurrence_is_a_row_of_its_own(compared):
    arm = [[sample(BYTES, 1.0), sample(BYTES, 5.0, occurrence=1)]]
    assert compared(arm, arm)["save[1]", BYTES].baseline == 5.0


def test_what_one_arm_lacks_is_kept(compared):
    found = compared([[sample(HITS, 4.0)]], [[sample(BYTES, 1.0)]])
    assert (found["save", HITS].candidate, found["save", HITS].delta) == (None, None)
    assert found["save", BYTES].baseline is None


def test_from_nothing_there_is_no_share(compared):
    found = compared([[sample(HITS, 0.0)]], [[sample(HITS, 4.0)]])["save", HITS]
    assert (found.delta, found.apart) == (None, 1.0)
    same = compared([[sample(HITS, 0.0)]], [[sample(HITS, 0.0)]])["save", HITS]
    assert same.delta == 0.0


def test_the_worst_host_counts(make_record):
    def arm(low, high):
        return repeats_of(
            make_record(host=host, num_hosts=2, samples=(sample(name, value),))
            for name in (RATE,)
            for host, value in enumerate((low, high))
        )

    [found] = compare_metrics(arm(1.0, 4.0), arm(2.0, 4.0))
    assert (found.baseline, found.candidate) == (1.0, 2.0)


def test_what_is_not_finite_is_left_out(compared):
    found = compared([[sample(HITS, float("nan"))], [sample(HITS, 1.0)]], [[sample(HITS, 1.0)]])
    assert found["save", HITS].repeats["baseline"] == 1


def test_an_unpaired_verdict_has_them(make_separate_run):
    runs = [make_separate_run(day, day, folder=f"run{day}") for day in (1, 2)]
    report = compare_stored(*(str(run.root) for run in runs))
    [found] = report.points[0].metrics
    assert found.delta == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("render", [to_html, to_markdown])
def test_a_page_has_every_metric(arms, render):
    page = render(verdicts_document(compare_stored(str(arms.root), None))).replace("\xa0", " ")
    for word in (BYTES, RATE, HITS, "+100.0 %", "-50.0 %", "no test was made"):
        assert word in page


def test_a_value_has_its_unit_and_a_name_is_that_of_the_records(two_runs):
    lines = printed(two_runs, "all")
    [peak] = [line.split() for line in lines if PEAK in line]
    assert peak == [PEAK, "300", "KiB", "600", "KiB", "+100.0", "%", "lower"]
    [queue] = [line.split() for line in lines if QUEUE in line]
    assert queue[:5] == [QUEUE, "0.001", "ms", "2", "ms"]
    page = to_html(verdicts_document(two_runs)).replace("\xa0", " ")
    assert "300 KiB" in page
    assert "<th>unit</th>" not in page


def test_a_name_that_is_too_long_for_a_line_of_numbers_has_its_own(two_runs):
    lines = printed(two_runs, "all")
    [at] = [number for number, line in enumerate(lines) if LONG in line]
    assert lines[at].strip() == LONG
    assert lines[at + 1].split()[:4] == ["3", "s", "9", "s"]
    assert max(map(len, lines)) <= 80


def test_times_of_operations_that_decide_come_before_all_else(two_runs):
    lines = printed(two_runs)
    names = [PEAK, QUEUE, LONG, HITS, TIME]
    assert [name for line in lines for name in names if name in line.split()] == [
        *(TIME, LONG, QUEUE, HITS, PEAK),
        *(TIME, HITS),
    ]
    at = {operation: lines.index(f"  {operation}") for operation in ("save", "save_background")}
    assert at["save"] < at["save_background"]


def test_verdicts_of_all_points_come_before_metrics_of_any(make_point, run_of):
    points = [make_point(label=f"p={number}", options={"p": number}) for number in (1, 2)]
    report = compare_unpaired(
        *([each for point in points for each in run_of(factor, point)] for factor in (1.0, 3.0)),
        GateConfig(),
    )
    lines = printed(report)
    verdicts = [number for number, line in enumerate(lines) if line.startswith("? INCONCLUSIVE ")]
    tables = [number for number, line in enumerate(lines) if line.startswith("  metric  ")]
    assert (len(verdicts), len(tables)) == (2, 2)
    assert max(verdicts) < min(tables)
    assert [points[place].id in lines[at - 1] for place, at in enumerate(tables)] == [True, True]


def test_a_verdict_of_an_earlier_release_shows_none(eventful):
    file = io.StringIO()
    print_document(verdicts_document(eventful), Console(file=file))
    assert "etrics" not in file.getvalue()
