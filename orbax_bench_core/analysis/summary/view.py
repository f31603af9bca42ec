"""Page of a run's summary: tables of operations, remarks, problems, provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orbax_bench_core.analysis.summary.charts import charts
from orbax_bench_core.analysis.summary.effects import effects_elements
from orbax_bench_core.analysis.summary.model import Failure, PointStatus, RunSummary
from orbax_bench_core.analysis.summary.operations import (
    not_alone,
    operations_table,
    retried_lines,
    shared_warning,
    traced_line,
)
from orbax_bench_core.analysis.summary.provenance_facts import provenance_facts, verification_lines
from orbax_bench_core.analysis.summary.tables import (
    NO_EXTRA,
    ExtraColumns,
    PointTable,
    point_tables,
    with_measured,
)
from orbax_bench_core.document import (
    Code,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Heading,
    Items,
    Only,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    count,
)
from orbax_bench_core.records import Record, RunInfo, Series

_MOST_REPEATS: Final = 10


def summary_document(
    info: RunInfo,
    summary: RunSummary,
    example: Record | None = None,
    extra: ExtraColumns = NO_EXTRA,
    answer: Document | None = None,
    files: Mapping[str, str] | None = None,
) -> Document:
    """Returns the page of the summary of a run; `terminal_document` is what a terminal shows."""
    above = () if answer is None else answer.elements
    return Document(
        title=info.suite_name,
        elements=_page(info, summary, example, extra, above, files or {}),
        escape=False,
    )


def _page(
    info: RunInfo,
    summary: RunSummary,
    example: Record | None,
    extra: ExtraColumns,
    answer: tuple[Element, ...],
    files: Mapping[str, str],
) -> tuple[Element, ...]:
    extra = with_measured(summary, extra)
    tables = point_tables(summary, extra)
    computed = (
        "Median and interquartile spread over the measured repeats, each on its slowest host; "
        "GiB/s is all bytes over all seconds."
    )
    problems = [point for point in summary.points if point.failed or point.skipped]
    return (
        Heading(Span(info.suite_name), level=1),
        Only("html", (_run(info, summary, "×"),)),
        Only("markdown", (_run(info, summary, "x"),)),
        *shared_warning(summary.points),
        *answer,
        Only("html", charts(info, summary, tables, extra)),
        Only("markdown", (Heading("Time per operation"), Paragraph(computed))),
        Only("markdown", (operations_table(tables, extra),)),
        Only("markdown", (*_legend(extra), *_remarks(tables))),
        Section(
            "What did not pass",
            (*(_problems(problems) if problems else ()), *retried_lines(summary.points)),
        ),
        Section("Verification", _verification(summary.points)),
        Section("Options in effect", effects_elements(summary.points)),
        Section("Notes", _notes(info, summary)),
        Heading("What it ran on"),
        Facts(
            tuple(
                (label, Span(fact))
                for label, fact in provenance_facts(example, summary.hosts, summary.points).items()
            )
        ),
        Only("html", (Section("Files beside this page", _files(files)),)),
    )


def _legend(extra: ExtraColumns) -> tuple[Element, ...]:
    return (Paragraph(extra.legend, "dim"),) if extra.legend else ()


def _files(files: Mapping[str, str]) -> tuple[Element, ...]:
    items = tuple((Span(name, href=name), f": {what}") for name, what in files.items())
    return (Items(items),) if items else ()


def _run(info: RunInfo, summary: RunSummary, times: str) -> Paragraph:
    if info.paired:
        size = _paired_size(info, summary)
    else:
        size = (
            f"{count(info.num_series, 'point')} {times} {count(info.num_repeats, 'repeat')}, order "
            f"{info.execution.order}"
        )
    said = (
        f", begun {info.created_at:%Y-%m-%d %H:%M} UTC, {info.status}: {size}, "
        f"{info.execution.warmups} warm-up(s)."
    )
    return Paragraph(("Run ", Span(info.run_id, code=True), said), "dim")


def _paired_size(info: RunInfo, summary: RunSummary) -> str:
    """Returns how much was measured of each pair: its blocks, and the operations of its arms."""
    status = {point.point_id: point for point in summary.points}
    arms = [
        [status[series.id] for series in Series.all_of(pair) if series.id in status]
        for pair in info.expansion.pairs
    ]
    blocks = [
        len(frozenset.intersection(*(arm.blocks for arm in found))) if found else 0
        for found in arms
    ]
    passed = [arm.passed for found in arms for arm in found] or [0]
    return (
        f"{count(len(arms), 'point')} in both arms, {_range(blocks, 'whole block')}, "
        f"{_range(passed, 'operation')} per arm"
    )


def _range(numbers: Sequence[int], what: str) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return count(high, what) if low == high else f"{low} to {count(high, what)}"


def _remarks(tables: Sequence[PointTable]) -> tuple[Element, ...]:
    """Returns remarks for below a table, which has no room for them in Markdown."""
    elements: list[Element] = []
    for table in tables:
        if table.remarks:
            texts = (f"! {said.text}" if said.serious else said.text for said in table.remarks)
            elements += [Paragraph(Span(f"{table.name}:")), Items(tuple(map(Span, texts)))]
    return tuple(elements)


def _verification(points: Sequence[PointStatus]) -> tuple[Element, ...]:
    lines = verification_lines(points)
    said = (Span(f"! {line}" if serious else line) for line, serious in lines)
    return (Items(tuple(said)),) if lines else ()


def _problems(points: Sequence[PointStatus]) -> tuple[Element, ...]:
    counts = tuple(Column(name, "number") for name in ("passed", "failed", "skipped"))
    reason = Column("reason", "prose")
    rows = [
        (str(point.passed), str(point.failed), str(point.skipped), Span(point.reason))
        for point in points
    ]
    names = [(Span(point.point), Span(point.point_id, "dim")) for point in points]
    together = (
        Row(((name, " ", point_id), *row))
        for (name, point_id), row in zip(names, rows, strict=True)
    )
    apart = (Row((*name, *row)) for name, row in zip(names, rows, strict=True))
    return (
        Only("html", (Table((Column("point"), *counts, reason), tuple(together)),)),
        Only("markdown", (Table((Column("point"), Column("id"), *counts, reason), tuple(apart)),)),
        *(_failure(point, failure) for point in points for failure in point.failures),
    )


def _failure(point: PointStatus, failure: Failure) -> Element:
    """Returns one way in which repeats failed, with what is known of it below."""
    repeats = ", ".join(map(str, failure.repeats[:_MOST_REPEATS]))
    more = len(failure.repeats) - _MOST_REPEATS
    some = f"repeats {repeats}" if len(failure.repeats) > 1 else f"repeat {repeats}"
    which = f"{some} and {more} more" if more > 0 else some
    said = Span(f"{point.point} {which}: {failure.error.said}")
    shown = failure.error.shown.strip()
    return Details(said, (Code(shown),)) if shown else Paragraph(said)


def _notes(info: RunInfo, summary: RunSummary) -> tuple[Element, ...]:
    skipped = [f"skipped {skip.point.name}: {skip.reason}" for skip in info.expansion.skipped]
    flags = [
        f"{point.point} {point.point_id}: {point.flag}"
        for point in summary.points
        if point.flag is not None
    ]
    flags += [
        f"{point.point} {point.point_id}: {not_alone(point)}"
        for point in summary.points
        if point.not_alone
    ]
    left_out = [f"left out: {line}" for line in summary.left_out]
    others = (*filter(None, [traced_line(summary.points)]), *info.expansion.notes)
    html = (*skipped, *flags, *left_out, *others)
    markdown = (*skipped, *(f"! {text}" for text in (*flags, *left_out)), *others)
    if not html:
        return ()
    return (
        Only("html", (Items(tuple(map(Span, html))),)),
        Only("markdown", (Items(tuple(map(Span, markdown))),)),
    )
