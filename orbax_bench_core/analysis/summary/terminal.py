"""Summary of a run in a terminal: every operation, then what failed or was skipped."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.analysis.summary.effects import effects_line
from orbax_bench_core.analysis.summary.model import MetricSummary, RunSummary
from orbax_bench_core.analysis.summary.operations import (
    not_alone,
    operations_table,
    retried_lines,
    shared_warning,
    traced_line,
    wrapped,
)
from orbax_bench_core.analysis.summary.provenance_facts import verification_lines
from orbax_bench_core.analysis.summary.tables import (
    MEASURED,
    NO_EXTRA,
    ExtraColumns,
    PointTable,
    headings,
    point_tables,
    with_measured,
)
from orbax_bench_core.document import (
    ByWidth,
    Column,
    Document,
    Element,
    Paragraph,
    Row,
    Span,
    Table,
    digits,
)
from orbax_bench_core.records import RunInfo

_NARROW: Final = 80
"""Columns of a terminal that has not been made wider."""


def terminal_document(
    info: RunInfo,
    summary: RunSummary,
    extra: ExtraColumns = NO_EXTRA,
    answer: Document | None = None,
) -> Document:
    """What a terminal shows of the summary of a run; `summary_document` has the page too."""
    above = () if answer is None else answer.brief or answer.elements
    elements = (*shared_warning(summary.points), *above, *summary_elements(summary, extra))
    return Document(title=info.suite_name, elements=elements, escape=False)


def metrics_document(summary: RunSummary) -> Document:
    """Returns every metric of a summary by point and operation, for a terminal."""
    elements: list[Element] = []
    for (point_id, point), of_point in itertools.groupby(
        summary.metrics, key=lambda metric: (metric.point_id, metric.point)
    ):
        rows: list[Row] = []
        by_operation: dict[str, list[MetricSummary]] = {}
        for metric in of_point:
            by_operation.setdefault(metric.operation, []).append(metric)
        for operation, found in by_operation.items():
            rows.append(Row((Span(operation, strong=True), "", "", "", "")))
            for metric in found:
                numbers = map(digits, (metric.median, metric.minimum, metric.maximum))
                name = Span(f" {metric.metric}")
                rows.append(Row((name, *map(Span, numbers), Span(metric.unit))))
        numeric = (Column(name, "number") for name in ("median", "min", "max"))
        columns = (Column("metric", apart=True), *numeric, Column("unit"))
        elements += [
            Paragraph((Span(point, strong=True), " ", Span(point_id, "dim"))),
            Table(columns, tuple(rows), indented=True, ruled=False),
        ]
    return Document(title="Metrics", elements=tuple(elements))


def notes_document(info: RunInfo) -> Document:
    """Returns what a reader of the suite should know: notes, and combinations that are skipped."""
    notes = [wrapped("note:", "unsure", note) for note in info.expansion.notes]
    notes += [
        wrapped("skipped:", "unsure", f"{skip.point.name}: {skip.reason}")
        for skip in info.expansion.skipped
    ]
    return Document(title=info.suite_name, elements=tuple(notes))


def summary_elements(summary: RunSummary, extra: ExtraColumns = NO_EXTRA) -> tuple[Element, ...]:
    """Returns what a terminal shows: every operation, then what failed or was skipped."""
    elements: list[Element] = []
    extra = with_measured(summary, extra)
    tables = point_tables(summary, extra)
    if tables:
        legend = (
            "Median, interquartile spread over the median, fastest and slowest of n repeats, each "
            "on its slowest host; GiB/s is all bytes over all seconds."
        )
        elements.append(_fitting(tables, extra))
        elements += [
            Paragraph(said, "dim", fold="wrapped") for said in (legend, extra.legend) if said
        ]
    if not summary.points:
        elements.append(Paragraph("No repeat has a record yet."))
    for line, serious in verification_lines(summary.points):
        mark = Span("!", "bad") if serious else ""
        elements.append(Paragraph(Span(line), "plain" if serious else "dim", mark=mark))
    for said in filter(None, [effects_line(summary.points), traced_line(summary.points)]):
        elements.append(Paragraph(Span(said), "dim", fold="wrapped"))
    for point in summary.points:
        name = f"{point.point} {point.point_id}"
        if point.flag is not None:
            elements.append(Paragraph(Span(f"{name}: {point.flag}"), mark=Span("!", "bad")))
        if point.not_alone:
            elements.append(Paragraph(Span(f"{name}: {not_alone(point)}"), mark=Span("!", "bad")))
        if point.failed:
            total = point.failed + point.passed + point.skipped
            said = f"{name}: {point.failed} of {total} repeats: {point.reason}"
            elements.append(wrapped("failed:", "bad", said))
        elif point.skipped:
            elements.append(wrapped("skipped:", "unsure", f"{name}: {point.reason}"))
    elements += retried_lines(summary.points)
    elements += [wrapped("left out:", "bad", line) for line in summary.left_out]
    if summary.points and not summary.measured:
        elements.append(Paragraph("Nothing was measured."))
    return tuple(elements)


def _fitting(tables: Sequence[PointTable], extra: ExtraColumns) -> Element:
    """Returns the operations of all points for a terminal: where it is narrow, in fewer columns."""
    every = headings(extra)
    lines = [every, *(row for table in tables for row in table.rows)]
    wide = {
        heading: 2 + max(map(len, column))
        for heading, column in zip(every, zip(*lines, strict=True), strict=True)
    }
    # Those that may be left out, the last to go first: each stays that still has room.
    others = [name for name in reversed(extra.headings) if name not in MEASURED]
    ranked = [*MEASURED, *others, "max", "min"]
    kept = {heading for heading in every if heading not in ranked}
    for heading in ranked:
        if heading in wide and sum(wide[shown] for shown in (*kept, heading)) <= _NARROW:
            kept.add(heading)
    whole = operations_table(tables, extra)
    if len(kept) == len(every):
        return whole
    rest = ", ".join(heading for heading in every if heading not in kept)
    told = Paragraph(
        f"Not shown, because the terminal is narrow: {rest}; report.html has all.", "dim"
    )
    return ByWidth(sum(wide.values()), (whole,), (operations_table(tables, extra, kept), told))
