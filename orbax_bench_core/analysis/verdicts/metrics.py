"""Metrics of both arms: medians, deltas, and their table."""

import bisect
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.headlines import primary_first
from orbax_bench_core.analysis.verdicts.model import MetricChange, PointVerdict
from orbax_bench_core.document import Column, Element, Paragraph, Row, Span, Table, digits
from orbax_bench_core.measure import CPU, OF_CPU, TIME, Better, block_name, lookup
from orbax_bench_core.records import Repeat

MetricsShown = Literal["all", "changed", "none"]
"""Metrics on a terminal: each of them by operation, those that differ most, or none."""

MOST: Final = 10
"""So many metrics of a point a terminal shows that has not asked for all."""
_NOTE: Final = (
    "Metrics: median over the repeats on the worst host; where no direction is better, the mean "
    "over the hosts. A change in % is the delta of these medians: it decides nothing, and no test "
    "was made of it. One with an x is the ratio of the verdict, with its interval."
)
_NOTE_OF_MEANS: Final = (
    "Metrics: mean over the repeats, then over the hosts, which is all that Orbax's own framework "
    "keeps of a baseline. They decide nothing, and no test was made of their deltas."
)
_KIB: Final = 1024
_BYTES: Final = {"bytes": 1, "B": 1, "KiB": _KIB, "MiB": _KIB**2, "GiB": _KIB**3, "TiB": _KIB**4}
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES: Final = (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))
_BARE: Final = ("", "count", "ratio")
"""Units of numbers that stand alone."""
_COLUMNS: Final = (
    *(Column(name, "number") for name in ("baseline", "candidate", "change")),
    Column("better", "fixed"),
)

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


def compare_means(
    means: Mapping[_Key, float], candidate: Iterable[Repeat]
) -> tuple[MetricChange, ...]:
    """Returns every metric of a baseline of which only means are known, and of a candidate.

    Both are the mean over the repeats and the hosts. A metric that only the baseline has has the
    unit of its definition.
    """
    kinds: dict[_Key, _Kind] = {}
    now = _values(candidate, kinds, dict.fromkeys(_REDUCED, statistics.fmean))
    return tuple(
        MetricChange(
            operation=key[0],
            metric=key[1],
            unit=kind.unit,
            better=kind.better,
            baseline=(before := means.get(key)),
            candidate=(after := statistics.fmean(now[key]) if key in now else None),
            repeats={"baseline": 0, "candidate": len(now.get(key, ()))},
            delta=_delta(before, after),
            apart=None,
        )
        for key, kind in {**{key: _known(key[1]) for key in means}, **kinds}.items()
    )


def note_of(metrics: Sequence[MetricChange]) -> str:
    """Returns the units of the metrics' numbers."""
    means = any(each.baseline is not None and not each.repeats["baseline"] for each in metrics)
    return _NOTE_OF_MEANS if means else _NOTE


def metric_lines(point: PointVerdict, shown: MetricsShown) -> tuple[Element, ...]:
    """Returns the metrics of a point for a terminal."""
    if shown == "none" or not point.metrics:
        return ()
    if shown == "all":
        return (_terminal_table(point, point.metrics),)
    found = _most_different(point)
    one_sided = sum(None in (metric.baseline, metric.candidate) for metric in point.metrics)
    left = {
        "more differ": len(found[MOST:]),
        "do not differ": len(point.metrics) - len(found) - one_sided,
        "only one arm has": one_sided,
    }
    more = ", ".join(f"{count} {what}" for what, count in left.items() if count)
    table = (_terminal_table(point, found[:MOST]),) if found else ()
    said = Span(f"metrics: {more}; `compare DIR --metrics all` has all", "dim")
    return (*table, Paragraph(said, indent=2, fold="hanging")) if more else table


def metric_table(point: PointVerdict) -> tuple[Element, ...]:
    """Returns all metrics of a point for a page, by operation; nothing where there are none."""
    if not point.metrics:
        return ()
    rows = []
    for metric in _by_operation(point, point.metrics):
        names = (Span(metric.operation, code=True), Span(metric.metric, code=True))
        rows.append(Row((*names, *map(Span, _numbers(point, metric)), _better(metric))))
    columns = (Column("operation"), Column("metric"), *_COLUMNS)
    return (Table(columns, tuple(rows)), Paragraph(note_of(point.metrics), "dim"))


def _values(
    repeats: Iterable[Repeat],
    kinds: dict[_Key, _Kind],
    reduced: Mapping[Better, Callable[[Sequence[float]], float]] = _REDUCED,
) -> dict[_Key, list[float]]:
    """Returns one value per repeat of each metric, and notes their kinds."""
    found: dict[_Key, list[float]] = {}
    for repeat in repeats:
        if not repeat.counts:
            continue
        here: dict[_Key, list[float]] = {}
        for record in repeat.records.values():
            for sample in record.samples:
                if math.isfinite(sample.value):
                    key = block_name(sample.operation, sample.occurrence), sample.metric
                    if key not in kinds:
                        kinds[key] = _Kind(sample.unit, _known(key[1]).better)
                    here.setdefault(key, []).append(sample.value)
        for key, of_hosts in here.items():
            found.setdefault(key, []).append(reduced[kinds[key].better](of_hosts))
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


def _known(metric: str) -> _Kind:
    try:
        found = lookup(metric)
    except KeyError:
        return _Kind("", "none")
    return _Kind(found.unit, found.better)


def _most_different(point: PointVerdict) -> list[MetricChange]:
    """Returns the metrics that both arms have and whose medians differ.

    Those of the operations that decide come first: their seconds, then the times inside them. Of
    each kind it begins with the least overlap; of times that are as far apart, the seconds between
    them say which matters, of what has other units the share.
    """
    primary = {operation.operation for operation in point.operations if operation.primary}

    def order(metric: MetricChange) -> tuple[bool, int, float, float]:
        was, now = metric.baseline or 0.0, metric.candidate or 0.0
        is_time = metric.unit == "s" and metric.better == "lower"
        change = math.inf if metric.delta is None else abs(metric.delta)
        return (
            metric.operation.partition("[")[0] not in primary,
            0 if metric.metric == TIME else 2 - is_time,
            -abs(metric.apart or 0.0),
            -abs(now - was) if is_time else -change,
        )

    both = (metric for metric in point.metrics if None not in (metric.baseline, metric.candidate))
    return sorted((metric for metric in both if metric.baseline != metric.candidate), key=order)


def _by_operation(point: PointVerdict, metrics: Sequence[MetricChange]) -> list[MetricChange]:
    names = [
        *(operation.operation for operation in primary_first(point)),
        *(metric.operation for metric in metrics),
    ]
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return sorted(metrics, key=lambda metric: order[metric.operation])


def _terminal_table(point: PointVerdict, metrics: Sequence[MetricChange]) -> Table:
    rows: list[Row] = []
    ordered = _by_operation(point, metrics)
    for operation, group in itertools.groupby(ordered, lambda each: each.operation):
        rows.append(Row((Span(operation, strong=True), *([""] * len(_COLUMNS)))))
        for metric in group:
            name = Span(f" {metric.metric}")
            rows.append(Row((name, *map(Span, _numbers(point, metric)), _better(metric))))
    columns = (Column("metric", apart=True), *_COLUMNS)
    return Table(columns, tuple(rows), indented=True, ruled=False)


def _numbers(point: PointVerdict, metric: MetricChange) -> tuple[str, str, str]:
    """Returns the median of both arms in a unit that suits their size, and the change.

    That is the ratio of the verdict of what this judged, so that there is one of it everywhere.
    """
    known = [value for value in (metric.baseline, metric.candidate) if value is not None]
    unit, factor = _scale(metric.unit, max(map(abs, known), default=0.0))
    behind = "" if unit in _BARE else f" {unit}"
    before, after = (
        "–" if value is None else f"{digits(value / factor)}{behind}"
        for value in (metric.baseline, metric.candidate)
    )
    return before, after, _judged_ratio(point, metric) or _delta_words(metric)


def _judged_ratio(point: PointVerdict, metric: MetricChange) -> str:
    """Returns the ratio of an operation's verdict; empty for what has none of its own.

    What a repeat does several times is judged by its sum, which is no metric of one of them.
    """
    measured = [each.operation for each in point.metrics if each.metric == TIME]
    several = sum(name.partition("[")[0] == metric.operation for name in measured) > 1
    judged = {TIME: metric.operation, CPU: f"{metric.operation}{OF_CPU}"}.get(metric.metric)
    if judged is None or several:
        return ""
    for operation in point.operations:
        if operation.operation == judged and operation.verdict.ratio is not None:
            found = operation.verdict
            return f"{words.ratio(found.ratio)}{words.beside(found)}"
    return ""


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
