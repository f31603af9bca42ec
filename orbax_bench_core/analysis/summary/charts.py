"""Drawings of a run: every repeat of an operation as a dot, and where its time went."""

from collections.abc import Mapping, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.analysis.summary.aggregate import STAGES
from orbax_bench_core.analysis.summary.model import OperationSummary

_MOST_DRAWN: Final = 12
"""Points of a drawing, the fastest ones."""
_MOST_DOTS: Final = 40
_TONES: Final[tuple[pages.Tone, ...]] = ("c1", "c2", "c3", "c4", "c5", "c6", "c7")
_REST: Final = "elsewhere"

Rows = Mapping[str, OperationSummary]
"""Operations by the names of their rows."""


def repeats_chart(title: str, rows: Rows) -> pages.Chart:
    """Returns every repeat as a dot, the middle half as a band and the median as a stroke."""
    drawn = _fastest(rows)
    scale = pages.Scale.of([each.seconds for each in drawn.values()])
    bands: list[tuple[float, float]] = []
    dots: list[tuple[float, float]] = []
    beyond: list[tuple[float, float]] = []
    ticks: list[tuple[float, float]] = []
    said = []
    for row, (name, operation) in enumerate(reversed(drawn.items())):
        time = operation.time
        bands += [(time.q25, row - 0.3), (time.q75, row + 0.3)]
        ticks.append((time.median, row))
        for number, value in enumerate(_some(operation.seconds)):
            # So that equal values do not hide each other.
            height = row - 0.2 + 0.4 * (number * 0.618 % 1)
            (beyond if value > scale.high else dots).append((value, height))
        ends = f"{pages.seconds(time.minimum)} to {pages.seconds(time.maximum)}"
        said.append(f"{name} {pages.seconds(time.median)}, {ends}")
    left = len(rows) - len(drawn)
    more = f", the fastest {len(drawn)} of {len(rows)}" if left else ""
    return pages.Chart(
        f"{title}{more}: every repeat, on its slowest host",
        "; ".join(reversed(said)),
        pages.Axis("seconds, log scale", scale, scale.axis(pages.seconds)),
        pages.named_axis(list(drawn)[::-1]),
        (
            pages.Mark("band", tuple(bands), "c1", "middle half"),
            pages.Mark("dots", tuple(dots), "c1"),
            pages.Mark("dots", tuple(beyond), "bad", "beyond the axis"),
            pages.Mark("tick", tuple(ticks), "plain", "median"),
        ),
        pages.rows_height(list(drawn)),
    )


def _fastest(rows: Rows) -> dict[str, OperationSummary]:
    ordered = sorted(rows.items(), key=lambda row: row[1].time.median)
    return dict(ordered[:_MOST_DRAWN])


def _some(values: Sequence[float]) -> Sequence[float]:
    """Returns all of few values; of many those at equal ranks, from smallest to largest."""
    if len(values) <= _MOST_DOTS:
        return values
    ordered, last = sorted(values), len(values) - 1
    return [ordered[round(last * rank / (_MOST_DOTS - 1))] for rank in range(_MOST_DOTS)]


def stages_of(medians: Mapping[str, float]) -> dict[str, float]:
    """Returns the seconds of each stage that Orbax timed, from the medians of an operation."""
    return {
        name: found[0]
        for name, metrics in STAGES.items()
        if (found := [medians[metric] for metric in metrics if medians.get(metric)])
    }


def stages_chart(
    operation: str, rows: Rows, stages: Mapping[str, Mapping[str, float]]
) -> pages.Chart:
    """Returns the stages of an operation end to end, by row, and a stroke at the median of all.

    Stages may run side by side: then they reach beyond it. What no stage has is elsewhere.
    """
    drawn = _fastest({name: rows[name] for name, found in stages.items() if found})
    names = dict.fromkeys(stage for name in drawn for stage in stages[name])
    bars: dict[str, list[tuple[float, float]]] = {name: [] for name in (*names, _REST)}
    ticks: list[tuple[float, float]] = []
    said, longest = [], 0.0
    for row, (name, summary) in enumerate(reversed(drawn.items())):
        median, end, told = summary.time.median, 0.0, []
        rest = max(median - sum(stages[name].values()), 0.0)
        for stage, length in (*stages[name].items(), (_REST, rest)):
            bars[stage] += [(end, row - 0.3), (end + length, row + 0.3)]
            end += length
            share = pages.percent(length / median if median else None)
            told.append(f"{stage} {pages.seconds(length)}, {share}")
        ticks.append((median, row))
        longest = max(longest, end, median)
        said.append(f"{name}: {', '.join(told)}")
    tones = dict(zip(names, _TONES, strict=False))
    return pages.Chart(
        f"Stages of {operation}, end to end",
        "; ".join(reversed(said)),
        pages.axis("median; the stroke is that of the whole", 0, 1.02 * longest, pages.seconds),
        pages.named_axis(list(drawn)[::-1]),
        (
            *(
                pages.Mark("bar", tuple(at), tones.get(name, "dim"), name)
                for name, at in bars.items()
            ),
            pages.Mark("tick", tuple(ticks), "plain"),
        ),
        pages.rows_height(list(drawn)),
    )
