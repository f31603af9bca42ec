"""Async study for people: its sentences, a table and a figure per series, and the lines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.async_study import model
from orbax_bench_core.analysis.async_study.study import NEAR
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

HEADINGS: Final = (
    "checkpoint",
    "parameters",
    "bytes",
    "n",
    "blocked, sync",
    "blocked, async",
    "saved",
    "total, sync",
    "total, async",
    "total async/sync",
)
NUMBERS: Final = HEADINGS[1:]
"""Columns of numbers."""
BLOCKED: Final = ("parameters", "blocked, sync", "blocked, async", "saved")
"""The columns that answer the question of a study."""

READING: Final = """\
Blocked is the time until training goes on (`save_blocking`), total the time until the checkpoint \
is committed (`save`). Saved is 1 - blocked async / blocked sync.
Times are medians of n repeats, in brackets an interval that holds the median in at least 95 % of \
cases. Fewer than 6 repeats of a kind do not have one: there it is the fastest and the slowest, \
which hold it in 94 % of cases with 5 repeats, 88 % with 4 and 75 % with 3.
Shares and ratios are medians over all pairs of an async and a sync repeat, with the 95 % interval \
of the rank test; 3 repeats of each kind have none.
The documented figures are those of the Orbax documentation for models of 300M, 8B and 340B \
parameters. It does not say on what they were measured, so they show the shape and are no target."""
"""Reading aid of a study, one line each."""

_PER_SECOND: Final = {"µs": 1e6, "ms": 1e3, "s": 1.0, "min": 1 / 60}


def size_row(size: model.Size) -> tuple[str, ...]:
    """Returns one size as cells with the columns of `HEADINGS`."""
    blocking, background = size.blocking, size.background
    counts = dict.fromkeys((blocking.blocked.n, background.blocked.n))
    return (
        size.checkpoint,
        "–" if size.num_parameters is None else count(size.num_parameters),
        doc.num_bytes(size.num_bytes),
        " and ".join(map(str, counts)),
        _seconds(blocking.blocked),
        _seconds(background.blocked),
        share(size.saved),
        _seconds(blocking.total),
        _seconds(background.total),
        _ratio(size.overhead),
    )


def headline(study: model.AsyncStudy) -> str:
    """Returns the result of a study, one sentence per series."""
    return " ".join(_sentence(series, several=len(study.series) > 1) for series in study.series)


def documented(figures: tuple[model.Documented, ...]) -> str:
    """Returns what the documentation says, in one sentence."""
    said = ", ".join(
        f"{percent(figure.saved)} at {count(figure.num_parameters)}" for figure in figures
    )
    return f"Documented: {said} parameters."


def fit_lines(series: model.SizeSeries) -> list[str]:
    """Returns the lines through the sizes and their limits, one sentence each."""
    fit = series.fit
    if fit is None:
        return []
    said = [f"Blocked, sync: {_line(fit.blocking)}. Blocked, async: {_line(fit.background)}."]
    if fit.blocking.flat or fit.limit is None:
        said.append("Blocking saves do not grow with the bytes, so the lines explain nothing.")
        return said
    if fit.background.flat:
        said.append(
            "Async saves block as long at every size, as far as the noise lets see. So the share "
            "saved grows because blocking saves do; where it ends is not measured."
        )
    else:
        said.append(
            f"By these lines the share saved goes to {percent(fit.limit)} for large checkpoints."
        )
    if max(fit.blocking.worst, fit.background.worst) > NEAR:
        said.append(
            f"A line misses a median by more than {percent(NEAR)}: its speed is not to be trusted."
        )
    said.append(
        f"They are straight lines through {len(series.sizes)} medians of this place: a "
        "description, not a forecast for other machines, other storage or many hosts."
    )
    return said


def count(value: float) -> str:
    """Returns a number of parameters as people write it, such as 1.02B."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        # From 999.5 on, three digits are those of the next unit.
        if value >= 0.9995 * limit:
            scaled = value / limit
            return f"{scaled:.3g}{unit}" if scaled < 999.5 else f"{scaled:.0f}{unit}"
    return f"{value:.0f}"


def percent(ratio: float) -> str:
    """Returns a share in percent, finer where it is near to all."""
    if not 0.9 < ratio < 1:
        return f"{100 * ratio:.0f} %"
    return f"{100 * ratio:.{3 if ratio < 0.995 else 4}g} %"


def share(saved: model.Ratio) -> str:
    """Returns a share with its interval, in percent."""
    if saved.low is None or saved.high is None:
        return percent(saved.value)
    return f"{percent(saved.value)} [{percent(saved.low)[:-2]}, {percent(saved.high)[:-2]}]"


def _sentence(series: model.SizeSeries, *, several: bool) -> str:
    first, last = series.sizes[0], series.sizes[-1]
    about = f"{series.name}: saving" if several else "Saving"
    said = (
        f"{about} in the background took {percent(first.saved.value)} off the blocked time at "
        f"{_size(first)}"
    )
    if len(series.sizes) == 1:
        return f"{said}."
    return f"{said} and {percent(last.saved.value)} at {_size(last)}."


def _size(size: model.Size) -> str:
    if size.num_parameters is None:
        return doc.num_bytes(size.num_bytes)
    return f"{count(size.num_parameters)} parameters"


def _line(line: model.Line) -> str:
    rate = line.bytes_per_s
    growing = (
        f"its bytes at {doc.num_bytes(rate)}/s" if rate and not line.flat else "no shown growth"
    )
    return (
        f"{doc.seconds(line.fixed_s)} and {growing}; the medians lie {percent(line.residual)} away "
        f"(root mean square), {percent(line.worst)} at most"
    )


def _seconds(time: model.Seconds) -> str:
    """Returns a median with its interval, in the unit of the median."""
    median = doc.seconds(time.median)
    if time.n == 1:
        return median
    factor = _PER_SECOND[median.rpartition(" ")[2]]
    low, high = (doc.digits(factor * end) for end in (time.low, time.high))
    return f"{median} [{low}, {high}]"


def _ratio(ratio: model.Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f}x"
    return f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


MOST_FIGURES: Final = 20
"""Series that have figures: a page of hundreds could not be opened."""

_BEYOND: Final = 3.0
"""Factor by which the axis goes beyond the sizes on it."""

WIDE: Final = 140
"""Columns from which on a console has room for total times beside blocked ones."""


def study_document(study: model.AsyncStudy) -> doc.Document:
    """Returns a study for people; a narrow console shows the blocked times alone."""
    return doc.Document(
        title=f"Async study: {study.suite}",
        elements=_page(study),
        brief=_brief(study),
        escape=False,
    )


def _page(study: model.AsyncStudy) -> tuple[doc.Element, ...]:
    elements: list[doc.Element] = [
        doc.Heading(f"Async study: {study.suite}", level=1),
        doc.Paragraph(headline(study)),
        doc.Paragraph(documented(study.documented), "dim"),
    ]
    for index, series in enumerate(study.series):
        elements.append(doc.Heading(doc.Span(series.name)))
        if index < MOST_FIGURES:
            drawn = functools.partial(shares_figure, series, study.documented)
            elements.append(
                doc.Figure(f"Share of blocked time saved by size: {series.name}", drawn)
            )
        elements.append(_table(series))
        elements += [doc.Paragraph(line, "dim") for line in fit_lines(series)]
    notes: list[doc.Element] = [doc.Items(study.notes)] if study.notes else []
    if len(study.series) > MOST_FIGURES:
        told = doc.Items((f"The first {MOST_FIGURES} series have figures.",))
        notes.append(doc.Only("html", (told,)))
    run = f"Run {study.run_id}."
    linked = f"{run} Figures are in `async_study.html`, every number in `async_study.json`."
    return (
        *elements,
        doc.Section("Notes", tuple(notes)),
        doc.Section("How to read this", (doc.Items(tuple(READING.splitlines())),)),
        doc.Only("html", (doc.Paragraph(f"{run} Every number is in `async_study.json`.", "dim"),)),
        doc.Only("markdown", (doc.Paragraph(linked),)),
    )


def _brief(study: model.AsyncStudy) -> tuple[doc.Element, ...]:
    elements: list[doc.Element] = []
    for series in study.series:
        table = _table(series)
        by_width = doc.ByWidth(WIDE, (table,), (table.only(BLOCKED),))
        elements += [doc.Heading(doc.Span(series.name)), by_width]
        elements += [doc.Paragraph(line, "dim") for line in fit_lines(series)]
    return (
        *elements,
        *(doc.Paragraph(note, mark=doc.Span("note:", "unsure")) for note in study.notes),
        doc.Paragraph(doc.Span(headline(study), strong=True)),
        doc.Paragraph(documented(study.documented), "dim"),
    )


def shares_figure(series: model.SizeSeries, documented: Sequence[model.Documented]) -> Drawing:
    """Returns the drawing of the share of the blocked time that is saved, size by size.

    Documented figures go by parameters, and are left out where the sizes are in bytes.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    figure = figures.new_figure(9.6, 4.2)
    axes = figure.subplots()
    axes.set_xscale("log")
    counts = [size.num_parameters for size in series.sizes]
    places = [
        float(number if series.by_parameters and number else size.num_bytes)
        for number, size in zip(counts, series.sizes, strict=True)
    ]
    saved = [size.saved for size in series.sizes]
    lows = [each.value if each.low is None else each.low for each in saved]
    highs = [each.value if each.high is None else each.high for each in saved]
    axes.vlines(places, lows, highs, color=figures.CANDIDATE, linewidth=1.4)
    axes.plot(
        places,
        [each.value for each in saved],
        "s",
        color=figures.CANDIDATE,
        label="measured here, 95 % interval",
    )
    if series.by_parameters:
        told = [(each.num_parameters, each.saved) for each in documented]
        axes.plot(
            *zip(*told, strict=True),
            "D",
            color=figures.INCONCLUSIVE,
            markerfacecolor="none",
            label="documented, on machines not named",
        )
        places += [float(number) for number, _ in told]
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
        axes.xaxis.set_major_formatter(lambda value, _: count(value))
        axes.set_xlabel("parameters")
    else:
        axes.xaxis.set_major_locator(LogLocator(base=4))
        axes.xaxis.set_major_formatter(lambda value, _: doc.num_bytes(value))
        axes.set_xlabel("bytes")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(min(places) / _BEYOND, max(places) * _BEYOND)
    axes.set_ylim(max(-1.0, min(0.0, *lows) - 0.05), 1.04)
    axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.figure.legend(loc="outside lower center", ncols=2)
    return figure


def _table(series: model.SizeSeries) -> doc.Table:
    columns = (doc.Column(name, "number" if name in NUMBERS else "text") for name in HEADINGS)
    return doc.Table(tuple(columns), tuple(doc.Row(size_row(size)) for size in series.sizes))
