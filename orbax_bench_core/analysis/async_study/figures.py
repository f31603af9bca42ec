"""Figures of an async study: times and the share saved, against the size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.async_study import words
from orbax_bench_core.analysis.async_study.model import Documented, Kind, Seconds, Size, SizeSeries
from orbax_bench_core.document import figures, num_bytes, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_HEIGHT: Final = 4.2
_STEPS: Final = 120
_BEYOND: Final = 3.0
"""Factor by which an axis goes beyond the sizes on it."""
_LEAST_SHARE: Final = -1.0
"""Share at which the axis ends: a background save that blocks twice as long as a blocking one."""


def times_figure(series: SizeSeries) -> Figure:
    """Returns the drawing of blocked and total times."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    draw_times(figure.subplots(), series)
    return figure


def shares_figure(series: SizeSeries, documented: Sequence[Documented]) -> Figure:
    """Returns the drawing of the share of the blocked time that is saved."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    draw_shares(figure.subplots(), series, documented)
    return figure


def draw_times(axes: Axes, series: SizeSeries) -> None:
    """Draws blocked and total seconds of both kinds of save, and the lines through the blocked."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    places = [_place(series, size) for size in series.sizes]
    kinds = (
        ("sync", figures.BASELINE, "o", [size.blocking for size in series.sizes]),
        ("async", figures.CANDIDATE, "s", [size.background for size in series.sizes]),
    )
    for name, colour, marker, of_kind in kinds:
        _draw_kind(axes, places, of_kind, name, colour, marker)
    if series.fit is not None and _one_order(series):
        sizes = _spread(series.sizes[0].num_bytes, series.sizes[-1].num_bytes)
        at = [_of_bytes(series, size) for size in sizes]
        lines = (
            (series.fit.blocking, figures.BASELINE),
            (series.fit.background, figures.CANDIDATE),
        )
        for line, colour in lines:
            axes.plot(at, [line.seconds(size) for size in sizes], color=colour, linewidth=1)
        axes.plot([], [], color=figures.DIM, linewidth=1, label="fixed time + bytes / speed")
    _size_axis(axes, series, places)
    _seconds_axis(axes.yaxis)
    axes.set_title("Time of a save: until training goes on (blocked) and until it is committed")
    axes.figure.legend(loc="outside lower center", ncols=5)


def draw_shares(axes: Axes, series: SizeSeries, documented: Sequence[Documented]) -> None:
    """Draws the share of the blocked time that is saved, its curve, and documented figures.

    Documented figures go by parameters, and are left out where the sizes are in bytes.
    """
    axes.set_xscale("log")
    places = [_place(series, size) for size in series.sizes]
    saved = [size.saved for size in series.sizes]
    shown = documented if series.by_parameters else ()
    lowest = min([0.0, *(ratio.value if ratio.low is None else ratio.low for ratio in saved)])
    bottom = max(lowest - 0.05, _LEAST_SHARE)
    axes.errorbar(
        places,
        [max(ratio.value, bottom) for ratio in saved],
        yerr=[
            [
                0 if ratio.low is None else max(ratio.value - max(ratio.low, bottom), 0)
                for ratio in saved
            ],
            [0 if ratio.high is None else ratio.high - ratio.value for ratio in saved],
        ],
        fmt="s",
        color=figures.CANDIDATE,
        elinewidth=1.4,
        capsize=2.5,
        label="measured here, 95 % interval",
        zorder=3,
    )
    reference = [float(figure.num_parameters) for figure in shown]
    _draw_curve(axes, series, [*places, *reference])
    if shown:
        _draw_documented(axes, shown)
    _size_axis(axes, series, [*places, *reference])
    axes.set_ylim(bottom, 1.04)
    axes.yaxis.grid(visible=True, color=figures.LINE, linewidth=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_title("Share of the blocked time that saving in the background saves")
    axes.figure.legend(loc="outside lower center", ncols=4)


def _draw_documented(axes: Axes, documented: Sequence[Documented]) -> None:
    axes.plot(
        [float(figure.num_parameters) for figure in documented],
        [figure.saved for figure in documented],
        "D",
        color=figures.INCONCLUSIVE,
        markerfacecolor="none",
        markersize=7,
        label="documented, on machines not named",
    )
    for figure in documented:
        axes.annotate(
            f"documented: {words.percent(figure.saved)} at {words.count(figure.num_parameters)}",
            (figure.num_parameters, figure.saved),
            xytext=(0, -15),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color=figures.INCONCLUSIVE,
        )


def _draw_kind(
    axes: Axes, places: list[float], found: list[Kind], name: str, colour: str, marker: str
) -> None:
    blocked = [kind.blocked for kind in found]
    axes.errorbar(
        places,
        [seconds.median for seconds in blocked],
        yerr=_bars(blocked),
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


def _draw_curve(axes: Axes, series: SizeSeries, places: Sequence[float]) -> None:
    """Draws the curve of the lines, dashed where nothing was measured."""
    fit = series.fit
    if fit is None or not _one_order(series):
        return
    low, high = series.sizes[0].num_bytes, series.sizes[-1].num_bytes
    inside = _spread(low, high)
    axes.plot(
        [_of_bytes(series, size) for size in inside],
        [fit.saved(size) for size in inside],
        color=figures.CANDIDATE,
        linewidth=1.2,
        label="two lines fitted to the times",
    )
    end = high * max(places) * _BEYOND / _of_bytes(series, high)
    if fit.holds:
        outside = _spread(high, end)
        axes.plot(
            [_of_bytes(series, size) for size in outside],
            [fit.saved(size) for size in outside],
            color=figures.CANDIDATE,
            linewidth=1.2,
            linestyle=(0, (5, 4)),
            label="extrapolated, not measured",
        )


def _place(series: SizeSeries, size: Size) -> float:
    """Returns where a size is on the axis: its parameters, or its bytes."""
    by_parameters = series.by_parameters and size.num_parameters
    return float(by_parameters or size.num_bytes)


def _one_order(series: SizeSeries) -> bool:
    """Returns whether more parameters are more bytes, so that a curve over either is one."""
    num_bytes = [size.num_bytes for size in series.sizes]
    return num_bytes == sorted(num_bytes)


def _of_bytes(series: SizeSeries, size: float) -> float:
    """Returns where a number of bytes is on the axis, by interpolation between ordered sizes."""
    import numpy as np

    at = np.log([size.num_bytes for size in series.sizes])
    places = np.log([_place(series, size) for size in series.sizes])
    here = float(np.log(size))
    inside = float(np.clip(here, at[0], at[-1]))
    # Beyond the sizes, bytes per parameter stay what they are at the end.
    return float(np.exp(np.interp(inside, at, places) + here - inside))


def _spread(low: float, high: float) -> list[float]:
    """Returns numbers that are evenly spread on a log scale."""
    return [low * (high / low) ** (step / _STEPS) for step in range(_STEPS + 1)]


def _bars(times: Sequence[Seconds]) -> list[list[float]]:
    return [
        [seconds.median - seconds.low for seconds in times],
        [seconds.high - seconds.median for seconds in times],
    ]


def _size_axis(axes: Axes, series: SizeSeries, places: Sequence[float]) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xlim(min(places) / _BEYOND, max(places) * _BEYOND)
    axes.xaxis.set_minor_locator(NullLocator())
    if series.by_parameters:
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
        axes.xaxis.set_major_formatter(lambda value, _: words.count(value))
        axes.set_xlabel("parameters")
    else:
        axes.xaxis.set_major_locator(LogLocator(base=4))
        axes.xaxis.set_major_formatter(lambda value, _: num_bytes(value))
        axes.set_xlabel("bytes")


def _seconds_axis(axis: Axis) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
    axis.set_major_formatter(lambda value, _: seconds(value))
    axis.set_minor_locator(NullLocator())
    axis.grid(visible=True, color=figures.LINE, linewidth=0.5)
