"""Trends of a suite as small drawings, for the morning page."""

import itertools
import statistics
from collections.abc import Callable, Iterator
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.build import differences
from orbax_bench_core.analysis.history.model import History, PastRun, PastSeries
from orbax_bench_core.analysis.names import heading

_MOST_SERIES: Final = 20
_MOST: Final = 3.0
"""Ratio at which a drawing ends: one value far out does not flatten the others."""
_VERSIONS: Final = frozenset({"commit", "image"})
"""Versions that may differ every night, and are told only next to a change."""


def trends_of(history: History, margin: Callable[[str], float]) -> tuple[pages.Element, ...]:
    """Returns the series of a suite that decide, those that changed first, and each change.

    `margin` gives the slow-down of an operation that its verdicts rule out, such as 0.15.

    Args:
        history: The past runs of one suite.
        margin: Gives the slow-down that verdicts on an operation rule out, as a share.
    """
    every = [series for series in words.shown(history, every=False) if len(series.runs) > 1]
    columns = (
        *pages.columns("operation", "of", "runs#", "latest#", "last change#"),
        pages.Column("trend", "picture"),
    )
    rows = (_row(series, margin(series.operation)) for series in every[:_MOST_SERIES])
    more = len(every) - _MOST_SERIES
    return (
        pages.Text(
            items=tuple(line for each in every for line in words.excesses(each)), role="bad"
        ),
        pages.Table(columns, tuple(rows)),
        pages.Text(f"{more} more series: `orbax-bench history` shows them." if more > 0 else ""),
        *(element for each in every for element in _changes(each)),
    )


def worst(history: History) -> PastSeries | None:
    """Returns the series that decides and whose latest run is the slowest, or None without runs."""
    latest = max((run.began_at for each in history.series for run in each.runs), default=None)
    shown = words.shown(history, every=False)
    current = [each for each in shown if each.runs[-1].began_at == latest] or shown
    return max(current, key=lambda each: _relative(each)[-1], default=None)


def latest(series: PastSeries) -> str:
    """Returns the result of the last run: `save +62 %`, or `save 24 ms` of a run without arms."""
    return f"{heading(series.operation)} {_level(series)}"


def _level(series: PastSeries) -> str:
    value = series.runs[-1].value
    return pages.change(value) if series.kind == "ratio" else pages.seconds(value)


def new_in(history: History, run_id: str) -> tuple[str, ...]:
    """Returns the versions that a run was the first to have: `orbax-checkpoint: 0.12.7 → 0.12.8`.

    Nothing is returned of the first run, and of one that has no series.
    """
    for series in history.series:
        for before, now in itertools.pairwise(series.runs):
            if now.run_id == run_id:
                return _released(before, now)
    return ()


def what_ran_in(history: History) -> dict[str, str]:
    """Returns the release of Orbax, commit and environment of each run, by its id."""
    return {
        run.run_id: words.release_and_code(run) for series in history.series for run in series.runs
    }


def trend(series: PastSeries, margin: float) -> pages.Chart:
    """Returns the runs of a series against the baseline, with the margin as a band.

    The scale is that of what matters: it shows at least twice the margin on each side, so that
    what no verdict would call slower is flat. Seconds are shown against their median.
    """
    values = _relative(series)
    low = min(1 / (1 + 2 * margin), max(1 / _MOST, min(values)))
    high = max(1 + 2 * margin, min(_MOST, max(values)))
    start, end = -0.5, len(values) - 0.5
    marks = [
        pages.Mark("band", ((start, 1 / (1 + margin)), (end, 1 + margin)), "dim"),
        *_steps(series, low, high),
        pages.Mark("line", tuple(enumerate(values)), "c1"),
        pages.Mark("dots", ((len(values) - 1, values[-1]),), "c1"),
    ]
    ends = " to ".join(pages.change(value) for value in (min(values), max(values)))
    against = "the baseline" if series.kind == "ratio" else "their median"
    said = (
        f"{pages.count(len(values), 'run')} against {against}: {ends}, the latest "
        f"{pages.change(values[-1])}; the margin is {pages.percent(margin)}"
    )
    across = pages.Axis("", pages.Scale(start, end, log=False), ())
    return pages.Chart("", said, across, pages.Axis("", pages.Scale(low, high), ()), tuple(marks))


def _relative(series: PastSeries) -> list[float]:
    values = [run.value for run in series.runs]
    middle = 1.0 if series.kind == "ratio" else statistics.median(values)
    return [value / middle for value in values]


def _steps(series: PastSeries, low: float, high: float) -> Iterator[pages.Mark]:
    """Yields a line where another release ran, and a coloured one where the level changed."""
    for place, (before, now) in enumerate(itertools.pairwise(series.runs), start=1):
        if _released(before, now):
            yield pages.Mark("line", ((place - 0.5, low), (place - 0.5, high)), "dim", dashed=True)
    for change in series.changes:
        at = change.index - 0.5
        yield pages.Mark("line", ((at, low), (at, high)), "bad" if change.effect > 0 else "good")


def _released(before: PastRun, now: PastRun) -> tuple[str, ...]:
    found = differences(now.ran, before.ran)
    return tuple(each for each in found if each.partition(":")[0] not in _VERSIONS)


def _row(series: PastSeries, margin: float) -> pages.Row:
    last = series.changes[-1] if series.changes else None
    drawn = trend(series, margin)
    return pages.Row(
        (
            heading(series.operation),
            series.point,
            str(len(series.runs)),
            _level(series),
            "–"
            if last is None
            else pages.Cell(words.effect(last), "bad" if last.effect > 0 else "good"),
            pages.Cell(drawn.said, chart=drawn),
        )
    )


def _changes(series: PastSeries) -> Iterator[pages.Element]:
    """Yields each change with what ran differently since, and how to ask whether it is one."""
    for change in series.changes:
        with_it = "; ".join(change.differs) or "nothing that is recorded differs"
        when = words.day(series.runs[change.index].began_at)
        what = f"{heading(series.operation)} of {pages.code(series.point)}"
        said = f"{when}, {what}: {words.effect(change)}; {with_it}."
        if change.question:
            yield pages.Code(change.question, f"{said} This asks whether it is one:")
        else:
            yield pages.Text(f"{said} {words.asking(change)}")
