"""A history in the terminal."""

import io

import pytest
from rich.console import Console

from orbax_bench_core.analysis.history.view import history_document
from orbax_bench_core.document import print_document


@pytest.fixture
def said():
    """Returns what is printed of a history."""

    def say(history, *, width=160, **options):
        console = Console(file=io.StringIO(), width=width)
        print_document(history_document(history, **options), console)
        return console.file.getvalue()

    return say


def test_a_change_is_told_with_its_size_its_runs_and_its_versions(said, changed):
    text = said(changed)
    assert "(slower) between run run011 and run run012" in text
    assert "orbax-checkpoint: 0.12.7 → 0.12.8" in text
    assert "ask: orbax-bench bisect " in text
    assert (
        "1 of 1 ratios to a reference arm are flagged, to be confirmed by a paired comparison; "
        in text
    )


def test_a_name_is_no_markup(said, changed):
    assert "save_restore[kind=<script>alert(1)</script>|[red]&amp;]" in said(changed)


def test_seconds_are_shown_run_by_run_with_the_reason_why_nothing_is_looked_for(said, separate):
    text = said(separate)
    assert "the last 10 of 12 runs:" in text
    assert "run011" in text
    assert "run001" not in text
    assert "Raw seconds wander from day to day" in text
    assert "None is a ratio to a reference arm, so no change can be told." in text


def test_seconds_at_80_columns_have_whole_dates_and_numbers(said, separate):
    code = "5cd93852968a with changes 80c52803"
    [series] = separate.series
    runs = tuple(run.model_copy(update={"code": code}) for run in series.runs)
    changed = series.model_copy(update={"runs": runs})
    lines = said(separate.model_copy(update={"series": (changed,)}), width=80).splitlines()
    first = next(number for number, line in enumerate(lines) if "began" in line)
    table = lines[first : lines.index("", first)]
    assert max(map(len, table)) <= 80
    for run in runs[-10:]:
        [row] = [line for line in table if run.run_id in line]
        assert f"{run.began_at:%Y-%m-%d %H:%M}" in row
    assert sum("5cd93852968a" in line for line in table) == 10


def test_one_run_is_one_short_table(said, separate):
    last = [series.model_copy(update={"runs": series.runs[-1:]}) for series in separate.series]
    text = said(separate.model_copy(update={"num_runs": 1, "series": tuple(last)}))
    series = last[0]
    assert f"{series.point} {series.point_id}\n" in text
    assert len([line for line in text.splitlines() if "median" in line]) == 1
    assert f"one run, {series.runs[0].run_id} of " in text
    assert len(text.splitlines()) <= 4 + 2 * len(last) + 2


def test_the_line_of_bars_shows_the_step(said, changed):
    bars = next(line for line in said(changed).splitlines() if "▁" in line).split()[0]
    assert len(bars) == 20
    assert max(bars[:12]) < min(bars[12:])


def test_operations_that_decide_nothing_are_shown_on_demand(said, changed):
    hidden = changed.model_copy(
        update={
            "series": (
                *changed.series,
                changed.series[0].model_copy(update={"operation": "zz", "primary": False}),
            )
        }
    )
    assert " zz\n" not in said(hidden)
    assert "1 series of operations that decide nothing" in said(hidden)
    assert " zz\n" in said(hidden, every=True)


def test_nothing_at_all_can_be_shown(said, build, make_run, make_record):
    text = said(build([make_run([make_record(status="skipped")])]))
    assert "passed over:" in text
    assert "1 run, 0 series." in text
