"""Metrics of both arms: medians, deltas, and their table."""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from orbax_bench_core.analysis.verdicts.model import MetricChange, PointVerdict
from orbax_bench_core.document import ByWidth, Column, Element, Paragraph, Row, Span, Table, digits
from orbax_bench_core.measure import Better, lookup
from orbax_bench_core.records import Repeat

MetricsShown = Literal["all", "changed", "none"]
"""Metrics on a terminal: each of them by operation, those that differ most, or none."""

MOST: Final = 10
"""So many metrics of a point a terminal shows that has not asked for all."""
NOTE: Final = (
    "Metrics: median over the repeats on the worst host; where no direction is better, the mean "
    "over the hosts. They decide nothing, and no test was made of their deltas."
)
_KIB: Final = 1024
_BYTES: Final = {"bytes": 1, "B": 1, "KiB": _KIB, "MiB": _KIB**2, "GiB": _KIB**3, "TiB": _KIB**4}
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES: Final = (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_WIDTHS: Final = {"baseline": 8, "candidate": 9, "delta": 10, "better": 6}
_NUMBERS: Final = sum(_WIDTHS.values()) + 2 * (len(_WIDTHS) + 3)
"""Columns of a terminal that a table takes beside its names."""

_Key = tuple[str, str]
"""Operation, with its `[occurrence]` from the second on, and metric."""
_REDUCED: Final[Mapping[Better, Callable[[Sequence[float]], float]]] = {
    "lower": max,
    "higher": min,
    "none": statistics.fmean,
}
"""The value of a repeat by those of its hosts."""


class _Kind(NamedTuple):
    """Definition of a metric of an operation, as far as it is known."""

    unit: str
    better: Better


def compare_metrics(
    baseline: Iterable[Repeat], candidate: Iterable[Repeat]
) -> tuple[MetricChange, ...]:
    """Returns every metric that an arm has measured, in the order of measurement.

    Each repeat that counts has one value: that of the worst host or, where no direction is better,
    the mean over the hosts. Values that are not finite are left out.
    """
    kinds: dict[_Key, _Kind] = {}
    was, now = (_values(repeats, kinds) for repeats in (baseline, candidate))
    return tuple(
        _change(key, kind, was.get(key, ()), now.get(key, ())) for key, kind in kinds.items()
    )


def metric_lines(point: PointVerdict, shown: MetricsShown) -> tuple[Element, ...]:
    """Returns the metrics of a point for a terminal."""
    if shown == "none" or not point.metrics:
        return ()
    if shown == "all":
        return (_terminal_tables(point.metrics),)
    found = _most_different(point.metrics)
    one_sided = sum(None in (metric.baseline, metric.candidate) for metric in point.metrics)
    left = {
        "more differ": len(found[MOST:]),
        "do not differ": len(point.metrics) - len(found) - one_sided,
        "only one arm has": one_sided,
    }
    more = ", ".join(f"{count} {what}" for what, count in left.items() if count)
    table = (_terminal_tables(found[:MOST]),) if found else ()
    said = Paragraph(Span(f"metrics: {more}; `compare DIR --metrics all` has all", "dim"), indent=2)
    return (*table, said) if more else table


def metric_table(point: PointVerdict) -> tuple[Element, ...]:
    """Returns all metrics of a point for a page, by operation; nothing where there are none."""
    if not point.metrics:
        return ()
    columns = (
        Column("operation"),
        Column("metric"),
        Column("unit"),
        *(Column(name, "number") for name in ("baseline", "candidate", "delta")),
        Column("better", "fixed"),
    )
    rows = []
    for metric in _by_operation(point.metrics):
        unit, *numbers = _numbers(metric)
        names = (Span(metric.operation, code=True), Span(metric.metric, code=True), Span(unit))
        rows.append(Row((*names, *map(Span, numbers), _better(metric))))
    return (Table(columns, tuple(rows)), Paragraph(NOTE, "dim"))


def _values(repeats: Iterable[Repeat], kinds: dict[_Key, _Kind]) -> dict[_Key, list[float]]:
    """Returns one value per repeat of each metric, and notes their kinds."""
    found: dict[_Key, list[float]] = {}
    for repeat in repeats:
        if not repeat.counts:
            continue
        here: dict[_Key, list[float]] = {}
        for layout, values in repeat.columns.values():
            for key, unit, value in zip(layout.keys, layout.units, values, strict=True):
                if math.isfinite(value):
                    if key not in kinds:
                        kinds[key] = _Kind(unit, _direction(key[1]))
                    here.setdefault(key, []).append(value)
        for key, of_hosts in here.items():
            found.setdefault(key, []).append(_REDUCED[kinds[key].better](of_hosts))
    return found


def _change(key: _Key, kind: _Kind, was: Sequence[float], now: Sequence[float]) -> MetricChange:
    before = statistics.median(was) if was else None
    after = statistics.median(now) if now else None
    return MetricChange(
        operation=key[0],
        metric=key[1],
        unit=kind.unit,
        better=kind.better,
        baseline=before,
        candidate=after,
        repeats={"baseline": len(was), "candidate": len(now)},
        delta=_delta(before, after),
        apart=_apart(was, now) if was and now else None,
    )


def _delta(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    if before == after:
        return 0.0
    return (after - before) / abs(before) if before else None


def _apart(was: Sequence[float], now: Sequence[float]) -> float:
    """Returns Cliff's delta: P(candidate > baseline) - P(candidate < baseline)."""
    ordered = sorted(was)
    above = sum(bisect.bisect_left(ordered, value) for value in now)
    below = sum(len(ordered) - bisect.bisect_right(ordered, value) for value in now)
    return (above - below) / (len(was) * len(now))


def _direction(metric: str) -> Better:
    try:
        return lookup(metric).better
    except KeyError:
        return "none"


def _most_different(metrics: Iterable[MetricChange]) -> list[MetricChange]:
    """Returns the metrics that both arms have and whose medians differ, least overlap first."""

    def order(metric: MetricChange) -> tuple[float, float]:
        change = math.inf if metric.delta is None else abs(metric.delta)
        return -abs(metric.apart or 0.0), -change

    both = (metric for metric in metrics if None not in (metric.baseline, metric.candidate))
    return sorted((metric for metric in both if metric.baseline != metric.candidate), key=order)


def _by_operation(metrics: Sequence[MetricChange]) -> list[MetricChange]:
    order = {name: place for place, name in enumerate(dict.fromkeys(m.operation for m in metrics))}
    return sorted(metrics, key=lambda metric: order[metric.operation])


def _terminal_tables(metrics: Sequence[MetricChange]) -> ByWidth:
    """Returns a table with names as wide as they are, and one in which they take several lines."""
    rows = _terminal_rows(metrics)
    longest = max(len(_name(metric)) for metric in metrics)
    numbers = tuple(Column(name, "number", width=width) for name, width in _WIDTHS.items())
    # The column without a width takes what is left of the line.
    wide = (Column("metric", width=longest), *numbers, Column(""))
    padded = (Row((*row.cells, "")) for row in rows)
    return ByWidth(
        longest + _NUMBERS,
        (Table(wide, tuple(padded), indented=True, ruled=False),),
        (Table((Column("metric"), *numbers), tuple(rows), indented=True, ruled=False),),
    )


def _terminal_rows(metrics: Sequence[MetricChange]) -> list[Row]:
    rows: list[Row] = []
    for operation, group in itertools.groupby(_by_operation(metrics), lambda each: each.operation):
        rows.append(Row((Span(operation, strong=True), *([""] * len(_WIDTHS)))))
        for metric in group:
            _, *numbers = _numbers(metric)
            rows.append(Row((Span(_name(metric)), *map(Span, numbers), _better(metric))))
    return rows


def _name(metric: MetricChange) -> str:
    unit = _numbers(metric)[0]
    # A number of things needs no unit.
    return f" {metric.metric}{f' ({unit})' if unit not in ('', 'count') else ''}"


def _numbers(metric: MetricChange) -> tuple[str, str, str, str]:
    """Returns unit, median of both arms and delta, in a unit that suits their size."""
    known = [value for value in (metric.baseline, metric.candidate) if value is not None]
    unit, factor = _scale(metric.unit, max(map(abs, known), default=0.0))
    before, after = (
        "–" if value is None else digits(value / factor)
        for value in (metric.baseline, metric.candidate)
    )
    return unit, before, after, _delta_words(metric)


def _delta_words(metric: MetricChange) -> str:
    if metric.baseline is None or metric.candidate is None:
        return "one side"
    if metric.delta is None:
        return "from 0"
    if abs(metric.delta) >= 10:
        return f"{'+' if metric.delta > 0 else '-'}{digits(100 * abs(metric.delta))} %"
    return f"{100 * metric.delta:+.1f} %" if metric.delta else "0 %"


def _better(metric: MetricChange) -> str:
    return "–" if metric.better == "none" else metric.better


def _scale(unit: str, largest: float) -> tuple[str, float]:
    """Returns the unit to show values in, and what they are to be divided by."""
    size, per, rest = unit.partition("/s")
    if size in _BYTES and not rest:
        in_bytes = largest * _BYTES[size]
        step = min(int(math.log(in_bytes, _KIB)), len(_SIZES) - 1) if in_bytes >= 1 else 0
        return f"{_SIZES[step]}{per}", _KIB**step / _BYTES[size]
    if unit == "s" and 0 < largest < 1:
        fitting = [each for each in _TIMES if largest >= each[1]]
        return fitting[-1] if fitting else _TIMES[0]
    return unit, 1.0
