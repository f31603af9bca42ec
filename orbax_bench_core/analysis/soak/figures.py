"""Figure of a soak: memory of the process, save by save, and its slope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.soak.model import SoakSeries, SoakWord
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_HEIGHT: Final = 3.4
_COLOURS: Final[dict[SoakWord, str]] = {
    "LEAK": figures.REGRESSION,
    "PASS": figures.PASS,
    "INCONCLUSIVE": figures.INCONCLUSIVE,
}


def memory_figure(series: SoakSeries, limit_mib: float) -> Figure:
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
