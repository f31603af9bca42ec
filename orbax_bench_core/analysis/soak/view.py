"""Soak for people: the verdict in sentences, and a table of levels and a figure per process."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.soak.soak import (
    DROPPED,
    FEWEST,
    Growth,
    Level,
    Slope,
    Soak,
    SoakSeries,
    SoakWord,
)
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

HEADINGS: Final = ("what", "first", "last", "per save", "second half", "limit", "verdict")
NUMBERS: Final = ("first", "last", "per save", "second half", "limit")
"""Columns of numbers."""
JUDGED: Final = ("what", "per save", "second half", "verdict")
"""The columns that a verdict follows from."""

READING: Final = f"""\
Per save: the median of the slopes between all pairs of saves (Theil-Sen), in brackets its 95 % \
interval by a moving-block bootstrap. The first {DROPPED} saves of the process do not count.
LEAK: the interval lies above the limit, for all saves and for the second half of them alone. \
PASS: it lies below the limit in both. INCONCLUSIVE: neither. A heap that still fills up grows at \
first, and has stopped growing in the second half.
Memory of the process is its resident set when a save has ended. That of the control group is its \
anonymous memory, of all processes in it; it is shown and not judged. Times and files left on \
storage are shown and not judged either.
Orbax 0.12.8 with TensorStore 0.1.86 keep 0.02 to 0.05 MiB per save and load themselves: lists \
that TensorStore makes of its metrics and specs are never freed. The default limit lies well above \
that."""
"""Reading aid of a soak, one line each."""

NAMES: Final[dict[Level, str]] = {
    "rss": "memory of the process",
    "device": "memory of the device",
    "anon": "memory of the control group",
    "open_files": "file descriptors",
    "threads": "threads",
    "time": "time of a save",
    "files_left": "files left by a save",
}

_LEAKS: Final[dict[Level, str]] = {
    "rss": "the process keeps",
    "device": "the device keeps",
    "open_files": "open file descriptors grow by",
    "threads": "threads grow by",
}


def growth_row(growth: Growth) -> tuple[str, ...]:
    """Returns one level as cells with the columns of `HEADINGS`."""
    unit = " MiB" if growth.unit == "MiB" else ""
    return (
        NAMES[growth.level],
        _level(growth, growth.first),
        _level(growth, growth.last),
        _slope(growth, growth.whole),
        _slope(growth, growth.half),
        "–" if growth.limit is None else f"{doc.digits(growth.limit)}{unit}",
        growth.word or "–",
    )


def headline(soak: Soak) -> str:
    """Returns the result of a soak, one sentence per process."""
    several = len(soak.series) > 1
    return " ".join(sentence(series, soak.limit_mib, several=several) for series in soak.series)


def sentence(series: SoakSeries, limit_mib: float, *, several: bool) -> str:
    """Returns the verdict on one process in a sentence or two."""
    about = f"{series.name}, host {series.host}: " if several else ""
    if not series.growths:
        return (
            f"{about}No verdict from {series.saves} saves of one process: it takes {FEWEST}. Run "
            f"the same command with --saves {FEWEST}."
        )
    grown = {growth.level: growth for growth in series.growths}
    memory = [grown[level] for level in ("rss", "device") if level in grown]
    if series.word == "LEAK":
        kept = [growth for growth in series.growths if growth.word == "LEAK"]
        said = "; ".join(f"{_LEAKS[growth.level]} {_kept(growth)}" for growth in kept)
        return f"{about}{said[0].upper()}{said[1:]}, over {series.saves} saves."
    said = " and ".join(f"{NAMES[growth.level]} grows by {_kept(growth)}" for growth in memory)
    if series.word == "PASS":
        below = f"below the limit of {doc.digits(limit_mib)} MiB"
        return f"{about}The {said}: {below}, over {series.saves} saves."
    more = (
        f"about {series.needed} saves would tell"
        if series.needed is not None
        else "that is so near to the limit that more saves would not tell: choose another --limit"
    )
    return (
        f"{about}No verdict: the {said} over {series.saves} saves, and the limit is "
        f"{doc.digits(limit_mib)} MiB; {more}."
    )


def _kept(growth: Growth) -> str:
    value, bracket, interval = _slope(growth, growth.whole).partition(" [")
    unit = " MiB" if growth.unit == "MiB" else ""
    return f"{value}{unit} per save{bracket}{interval}"


def _level(growth: Growth, value: float) -> str:
    if growth.unit == "s":
        return doc.seconds(value)
    return f"{value:.0f}" if growth.unit == "count" else f"{value:.1f} MiB"


def _slope(growth: Growth, slope: Slope) -> str:
    # Seconds per save are shown in microseconds: a drift is a small part of a save.
    factor, unit = (1e6, " µs") if growth.unit == "s" else (1.0, "")
    value, low, high = (
        _signed(factor * growth) for growth in (slope.per_save, slope.low, slope.high)
    )
    return f"{value}{unit} [{low}, {high}]"


def _signed(value: float) -> str:
    if abs(value) < 0.0005:
        return "0"
    return f"{value:.3f}" if abs(value) < 1 else doc.digits(value)


_WIDTH: Final = 9.6
_HEIGHT: Final = 3.4
_COLOURS: Final[dict[SoakWord, str]] = {
    "LEAK": figures.REGRESSION,
    "PASS": figures.PASS,
    "INCONCLUSIVE": figures.INCONCLUSIVE,
}


def memory_figure(series: SoakSeries, limit_mib: float) -> Drawing:
    """Returns the drawing of the resident set after each save, with the slope and the limit."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    stride = max(1, -(-series.saves // max(1, len(series.levels))))
    firsts = range(1, series.saves + 1, stride)
    places = [(first + min(first + stride - 1, series.saves)) / 2 for first in firsts]
    axes.plot(places, series.levels, ".", color=figures.BAR, markersize=3, label="after a save")
    axes.axvspan(0, series.dropped, color=figures.LINE, alpha=0.6, label="does not count")
    growth = series.growth("rss")
    if growth is not None:
        middle = (series.dropped + series.saves) / 2
        level = (growth.first + growth.last) / 2
        ends = [series.dropped, series.saves]
        lines = (
            (growth.whole.per_save, _COLOURS[series.word], "-", "growth"),
            (limit_mib, figures.DIM, "--", "growth at the limit"),
        )
        for slope, colour, style, label in lines:
            axes.plot(
                ends,
                [level + slope * (end - middle) for end in ends],
                color=colour,
                linestyle=style,
                linewidth=1.2,
                label=label,
            )
    axes.set_xlim(0, series.saves + 1)
    axes.set_xlabel("save")
    axes.set_ylabel("resident set, MiB")
    axes.figure.legend(loc="outside lower center", ncols=4)
    return figure


_WIDE: Final = 120
"""Columns of a terminal that has room for the whole table."""


def soak_document(soak: Soak) -> doc.Document:
    """Returns a soak for people; a terminal reads the verdict last."""
    verdict = doc.Callout(doc.Span.judged(soak.word), headline(soak))
    series = [element for each in soak.series for element in _series(each, soak.limit_mib)]
    return doc.Document(
        title=f"Soak: {soak.suite}",
        elements=(
            doc.Heading(f"Soak: {soak.suite}", level=1),
            verdict,
            *series,
            doc.Section("Notes", (doc.Items(soak.notes),) if soak.notes else ()),
            doc.Section("How to read this", (doc.Items(tuple(READING.splitlines())),)),
            doc.Paragraph(f"Run {soak.run_id}. Every number is in `soak.json`.", "dim"),
        ),
        brief=(
            *(element for element in series if not isinstance(element, doc.Figure)),
            *(doc.Paragraph(note, mark=doc.Span("note:", "unsure")) for note in soak.notes),
            doc.Paragraph((doc.Span.judged(soak.word, strong=True), f": {headline(soak)}")),
        ),
    )


def soak_section(soak: Soak) -> doc.Document:
    """Returns what the report of a run says of its soak, above the tables."""
    verdict = doc.Callout(doc.Span.judged(soak.word), headline(soak))
    series = [element for each in soak.series for element in _series(each, soak.limit_mib)]
    tables = (
        doc.Paragraph(element.text) if isinstance(element, doc.Heading) else element
        for element in series
        if not isinstance(element, doc.Figure)
    )
    more = doc.Paragraph("Figures and explanations are in soak.html.", "dim")
    elements = (doc.Heading("Soak"), verdict, *tables, more)
    return doc.Document(title=soak.suite, elements=elements, brief=(verdict,))


def _series(series: SoakSeries, limit_mib: float) -> list[doc.Element]:
    about = f"{series.name}, host {series.host}: {series.saves} saves of one process"
    elements: list[doc.Element] = [doc.Heading(doc.Span(about))]
    if series.levels:
        elements.append(
            doc.Figure(
                f"Memory of the process by save: {series.name}",
                functools.partial(memory_figure, series, limit_mib),
                file=f"{series.series_id}_host_{series.host}.png",
            )
        )
    if series.growths:
        columns = (
            doc.Column(name, "number" if name in NUMBERS else "fixed", whole=name != HEADINGS[0])
            for name in HEADINGS
        )
        rows = []
        for growth in series.growths:
            *numbers, dash = growth_row(growth)
            word = doc.Span(dash, "dim") if growth.word is None else doc.Span.judged(growth.word)
            rows.append(doc.Row((*numbers, word), dim=growth.limit is None))
        table = doc.Table(tuple(columns), tuple(rows))
        elements.append(doc.ByWidth(_WIDE, (table,), (table.only(JUDGED),)))
    return elements
