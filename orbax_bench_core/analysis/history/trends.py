"""Trends of many suites as small plots, for the morning page."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.history import words
from orbax_bench_core.analysis.history.build import differences
from orbax_bench_core.analysis.history.model import History, PastRun, PastSeries

_MOST_SERIES: Final = 20
_TREND_HEIGHT: Final = 2.6
_VERSIONS: Final = frozenset({"commit", "image"})
"""Versions that may differ every night, and are told only beside a change."""


def trends_table(histories: Mapping[str, History], keys: Mapping[str, str]) -> doc.Table | None:
    """Returns the series of suites as small plots, those that changed first."""
    groups = [_group(history, suite, keys[suite]) for suite, history in histories.items()]
    columns = (
        doc.Column("series"),
        doc.Column("runs", "number"),
        doc.Column("latest", "number"),
        doc.Column("last change", "fixed"),
    )
    shown = tuple(group for group in groups if group.rows)
    return doc.Table(columns, groups=shown, plots="run by run") if shown else None


def _group(history: History, suite: str, key: str) -> doc.Group:
    every = [series for series in words.shown(history, every=False) if len(series.runs) > 1]
    rows = tuple(_row(series) for series in every[:_MOST_SERIES])
    more = len(every) - len(rows)
    said = f"{more} more series: `orbax-bench history` shows them."
    remarks = [doc.Paragraph(said, "dim")] if more else []
    return doc.Group(label=doc.Span(suite), rows=rows, remarks=tuple(remarks), key=key)


def what_ran_in(history: History) -> dict[str, str]:
    """Returns the release of Orbax, commit and environment of each run, by its id."""
    return {
        run.run_id: words.release_and_code(run) for series in history.series for run in series.runs
    }


def _row(series: PastSeries) -> doc.Row:
    name = f"{series.operation} of {series.point}"
    last = series.changes[-1] if series.changes else None
    changed = doc.Span("–")
    if last is not None:
        changed = doc.Span(words.effect(last), "bad" if last.effect > 0 else "good")
    return doc.Row(
        (
            doc.Cell(doc.Span(name), notes=(*words.excesses(series), *_steps(series))),
            str(len(series.runs)),
            words.level(series, series.runs[-1].value),
            changed,
        ),
        plot=trend_plot(series),
    )


def _steps(series: PastSeries) -> Iterator[str]:
    """Yields each change with what ran differently since, and how to ask whether it is one."""
    for change in series.changes:
        with_it = "; ".join(change.differs) or "nothing that is recorded differs"
        when = words.day(series.runs[change.index].began_at)
        yield f"{when} {words.effect(change)}: {with_it}; {words.asking(change)}"


def trend_plot(series: PastSeries) -> doc.Plot:
    """Returns every run as a dot, the level between changes, and where another release ran."""
    runs, scale = series.runs, _scale([run.value for run in series.runs])
    across = [100 * (place + 0.5) / len(runs) for place in range(len(runs))]

    def down(value: float) -> float:
        return 90 - 0.8 * scale.place(value)

    marks = []
    for place, (before, now) in enumerate(itertools.pairwise(runs), start=1):
        differs = [each for each in differences(now.ran, before.ran) if not _nightly(each)]
        if differs:
            told = f"{words.day(now.began_at)}: {'; '.join(differs)}"
            marks.append(doc.Mark("ticks", ((100 * place / len(runs), 0),), "dim", told))
    start = 0
    for part in series.parts:
        level = down(statistics.median(run.value for run in part))
        ends = (100 * start / len(runs), 100 * (start + len(part)) / len(runs))
        marks.append(doc.Mark("line", ((ends[0], level), (ends[1], level)), "plain"))
        start += len(part)
    for change in series.changes:
        told = f"{words.day(runs[change.index].began_at)}: {words.effect(change)}"
        tone: doc.Role = "bad" if change.effect > 0 else "good"
        marks.append(doc.Mark("ticks", ((100 * change.index / len(runs), 0),), tone, told))
    for centre, run in zip(across, runs, strict=True):
        marks.append(doc.Mark("dots", ((centre, down(run.value)),), "bar", _told(series, run)))
    ends_at = f"{words.level(series, runs[0].value)} to {words.level(series, runs[-1].value)}"
    return doc.Plot(f"{len(runs)} runs, {ends_at}", tuple(marks), height=_TREND_HEIGHT)


def _scale(values: Sequence[float]) -> doc.Scale:
    """Returns a scale of all values but single ones far from those around them.

    A step that lasts is no outlier, and neither is the last value: it may be the first of one.
    """
    around = [
        statistics.median(values[max(place - 1, 0) : place + 2]) for place in range(len(values))
    ]
    return doc.Scale.of([value] for value in [*around, values[-1]])


def _nightly(difference: str) -> bool:
    return difference.partition(":")[0] in _VERSIONS


def _told(series: PastSeries, run: PastRun) -> str:
    ran = words.release_and_code(run) or run.code
    value, around = words.value_of(series, run), words.around(series, run)
    return f"{words.day(run.began_at)}: {value} ({around}), {ran}"
