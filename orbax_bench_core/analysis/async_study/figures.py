"""Figure of an async study: blocked and total times, against the size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.async_study import words
from orbax_bench_core.analysis.async_study.model import Kind, SizeSeries
from orbax_bench_core.document import figures, num_bytes, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_HEIGHT: Final = 4.2
_BEYOND: Final = 3.0
"""Factor by which an axis goes beyond the sizes on it."""


def times_figure(series: SizeSeries) -> Figure:
    """Returns the drawing of both kinds of save, and the lines through the blocked times."""
    from matplotlib.ticker import LogLocator, NullLocator

    figure = figures.new_figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    places = [
        float((series.by_parameters and size.num_parameters) or size.num_bytes)
        for size in series.sizes
    ]
    sync, background = figures.BASELINE, figures.CANDIDATE
    _draw_kind(axes, places, [size.blocking for size in series.sizes], "sync", sync, "o")
    _draw_kind(axes, places, [size.background for size in series.sizes], "async", background, "s")
    if series.fit is not None:
        for line, colour in ((series.fit.blocking, sync), (series.fit.background, background)):
            at = [line.seconds(size.num_bytes) for size in series.sizes]
            axes.plot(places, at, color=colour, linewidth=1)
        axes.plot([], [], color=figures.DIM, linewidth=1, label="fixed time + bytes / speed")
    axes.set_xlim(min(places) / _BEYOND, max(places) * _BEYOND)
    if series.by_parameters:
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
        axes.xaxis.set_major_formatter(lambda value, _: words.count(value))
        axes.set_xlabel("parameters")
    else:
        axes.xaxis.set_major_locator(LogLocator(base=4))
        axes.xaxis.set_major_formatter(lambda value, _: num_bytes(value))
        axes.set_xlabel("bytes")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
    axes.yaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_title("Time of a save: until training goes on (blocked) and until it is committed")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def _draw_kind(
    axes: Axes, places: list[float], found: list[Kind], name: str, colour: str, marker: str
) -> None:
    blocked = [kind.blocked for kind in found]
    axes.errorbar(
        places,
        [time.median for time in blocked],
        yerr=[
            [time.median - time.low for time in blocked],
            [time.high - time.median for time in blocked],
        ],
        fmt=marker,
        color=colour,
        elinewidth=1.4,
        capsize=2.5,
        label=f"{name}, blocked",
        zorder=3,
    )
    axes.plot(
        places,
        [kind.total.median for kind in found],
        linestyle=(0, (1, 2)),
        marker=marker,
        markerfacecolor="none",
        markersize=8,
        color=colour,
        linewidth=1,
        label=f"{name}, total",
    )
