"""Charts as SVG that stretches to its place, below text of the page, which keeps its size.

The drawing has no text: labels and ticks are HTML around it, so that they are as large on a phone
as elsewhere, and are wrapped instead of being cut. Strokes keep their width.
"""

from collections.abc import Iterator

from orbax_bench_core.pages.elements import Axis, Chart, Mark
from orbax_bench_core.pages.escaping import escaped, inline

_SIDE = 1000
"""Length of both sides of a drawing, in its own units."""
_MANY = 4
"""Ticks of a horizontal axis of which a phone shows every other one."""
_TICK = 30
"""Half of the length of a tick, in the same units."""


def to_svg(chart: Chart) -> str:
    """Returns a chart as a `figure` of HTML; who cannot see it is told what it says."""
    lines = [f"M{10 * at:.0f} 0V{_SIDE}" for at, _ in chart.x.ticks]
    lines += [f"M0 {_SIDE - 10 * at:.0f}H{_SIDE}" for at, _ in chart.y.ticks]
    grid = f'<path class="grid" d="{"".join(lines)}"/>' if lines else ""
    drawn = (
        f'<svg viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" aria-hidden="true">'
        f"{grid}{_marks(chart)}</svg>"
    )
    return (
        f"<figure><figcaption>{inline(chart.title)}</figcaption>"
        f'<div class="chart" role="img" aria-label="{escaped(chart.said.replace("`", ""))}" '
        f'style="--h:{chart.height}px">'
        f'<div class="ys">{_ticks(chart.y, "top", flipped=True)}</div><div class="area">{drawn}'
        f'<div class="xs">{_ticks(chart.x, "left")}</div></div></div>'
        f"{_under(chart)}</figure>"
    )


def to_small_svg(chart: Chart) -> str:
    """Returns the marks of a chart alone, as an image for a cell of a table."""
    return (
        f'<svg class="small" viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(chart.said)}">{_marks(chart)}</svg>'
    )


def _marks(chart: Chart) -> str:
    x, y = chart.x.scale, chart.y.scale
    return "".join(
        _paths(
            mark, [(f"{10 * x.place(a):.0f}", f"{_SIDE - 10 * y.place(b):.0f}") for a, b in mark.at]
        )
        for mark in chart.marks
    )


def _ticks(axis: Axis, side: str, *, flipped: bool = False) -> str:
    every = len(axis.ticks) < _MANY
    return "".join(
        f"<span{'' if every or not number % 2 else ' class=odd'} "
        f'style="{side}:{100 - at if flipped else at:.4g}%">{escaped(label)}</span>'
        for number, (at, label) in enumerate(axis.ticks)
    )


def _under(chart: Chart) -> str:
    """Returns the label of the horizontal axis, and what the marks mean."""
    named = {mark.name: mark for mark in chart.marks if mark.name and mark.at}
    keys = "".join(
        f'<li><svg viewBox="0 0 240 120" aria-hidden="true">{_key(mark)}</svg>{escaped(name)}</li>'
        for name, mark in named.items()
    )
    legend = f"<ul>{keys}</ul>" if keys else ""
    return f'<div class="under"><span>{escaped(chart.x.label)}</span>{legend}</div>'


def _key(mark: Mark) -> str:
    """Returns the paths of a mark in a legend, whose drawing is 240 by 120."""
    if mark.shape in ("band", "bar"):
        return _paths(mark, [("20", "10"), ("220", "110")])
    if mark.shape in ("line", "whisker"):
        return _paths(mark, [("20", "60"), ("220", "60")])
    return _paths(mark, [("120", "60")])


def _paths(mark: Mark, places: list[tuple[str, str]]) -> str:
    path = "".join(_drawn(mark, places))
    looks = f"{mark.shape} t-{mark.tone}{' dashed' * mark.dashed}"
    hole = f'<path class="hole" d="{path}"/>' if mark.hollow else ""
    return f'<path class="{looks}" d="{path}"/>{hole}'


def _drawn(mark: Mark, places: list[tuple[str, str]]) -> Iterator[str]:
    if mark.shape == "line":
        yield "M" + "L".join(f"{x} {y}" for x, y in places)
    elif mark.shape == "dots":
        # A stroke of no length with round ends: unlike a circle it is not stretched with the
        # drawing.
        yield from (f"M{x} {y}h0" for x, y in places)
    elif mark.shape == "tick":
        yield from (f"M{x} {y}m0 -{_TICK}v{2 * _TICK}" for x, y in places)
    else:
        for (left, top), (right, bottom) in zip(places[::2], places[1::2], strict=True):
            if mark.shape == "whisker":
                yield f"M{left} {top}L{right} {bottom}"
            else:
                yield f"M{left} {top}H{right}V{bottom}H{left}Z"
