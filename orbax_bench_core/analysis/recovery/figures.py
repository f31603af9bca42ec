"""Figure of recovery drills: the phases of each series, end to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.recovery.model import RecoverySeries
from orbax_bench_core.analysis.summary import shortened
from orbax_bench_core.document import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH: Final = 9.6
_ROW: Final = 0.45
_COLOURS: Final = tuple(light for light, _ in figures.SERIES.values())


def phases_figure(series: Sequence[RecoverySeries]) -> Figure:
    """Returns the drawing of the medians of each phase, as bars end to end."""
    figure = figures.new_figure(_WIDTH, 1.6 + _ROW * len(series))
    axes = figure.subplots()
    for row, drilled in enumerate(series):
        end = 0.0
        for phase, colour in zip(drilled.phases[:-1], _COLOURS, strict=False):
            label = phase.phase if row == 0 else None
            axes.barh(row, phase.total, left=end, color=colour, height=0.6, label=label)
            end += phase.total
    names = shortened({drilled.series_id: drilled.name for drilled in series})
    axes.set_yticks(range(len(series)), [figures.label(name) for name in names.values()])
    axes.invert_yaxis()
    axes.set_xlabel("seconds from the kill")
    axes.figure.legend(loc="outside lower center", ncols=4)
    return figure
