"""Figure of a search over releases: the ratio by release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.releases.model import ReleaseSearch, SearchStep
from orbax_bench_core.analysis.verdicts import ratio_axis, ratio_limits
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_HEIGHT: Final = 3.2
_LEAST: Final = 0.05
_MOST_LABELS: Final = 14
_APART: Final = 0.12
"""Distance of the markers of one release, releases being 1 apart."""


def ratio_figure(search: ReleaseSearch, operation: str) -> Figure:
    """Returns the drawing of one operation: every comparison at its newer release."""
    figure = figures.new_figure(_WIDTH, _HEIGHT)
    draw_ratios(figure.subplots(), search, operation)
    return figure


def draw_ratios(axes: Axes, search: ReleaseSearch, operation: str) -> None:
    """Draws ratios with their intervals, filled against the good release, hollow against others."""
    colours = {"REGRESSION": figures.REGRESSION, "PASS": figures.PASS}
    every = [1.0]
    seen: dict[str, int] = {}
    for step in search.steps:
        for found in step.ratios:
            if found.operation != operation:
                continue
            low, high = found.low or found.ratio, found.high or found.ratio
            place = search.releases.index(step.release) + _APART * seen.get(step.release, 0)
            seen[step.release] = seen.get(step.release, 0) + 1
            colour = colours.get(step.outcome, figures.INCONCLUSIVE)
            axes.errorbar(
                [place],
                [found.ratio],
                yerr=[[max(found.ratio - low, 0)], [max(high - found.ratio, 0)]],
                fmt="o" if _against_first(search, step) else "D",
                color=colour,
                markerfacecolor=colour if _against_first(search, step) else figures.PAGE,
                elinewidth=1.4,
            )
            every += [low, found.ratio, high]
    axes.axhline(1, color=figures.DIM, linewidth=1)
    if search.conclusion == "named" and search.first_bad is not None:
        place = search.releases.index(search.first_bad) - 0.5
        axes.axvline(place, color=figures.REGRESSION, linewidth=1.2, linestyle=(0, (4, 3)))
    limits = ratio_limits(every, _LEAST)
    axes.set_yscale("log")
    axes.set_ylim(*limits)
    ratio_axis(axes.yaxis, *limits)
    axes.set_ylabel("newer / older release")
    axes.set_xlim(-0.5, len(search.releases) - 0.3)
    stride = -(-len(search.releases) // _MOST_LABELS)
    axes.set_xticks(range(0, len(search.releases), stride), search.releases[::stride])


def _against_first(search: ReleaseSearch, step: SearchStep) -> bool:
    return step.against == search.releases[0]
