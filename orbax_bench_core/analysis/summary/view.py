"""Document of a run's summary: tables of operations, remarks, problems, provenance."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.analysis.summary.aggregate import (
    Failure,
    OperationSummary,
    PointStatus,
    RunSummary,
)
from orbax_bench_core.analysis.summary.charts import (
    ChartRow,
    memory_cells,
    repeats_group,
    stage_elements,
)
from orbax_bench_core.analysis.summary.effects import effects_elements, effects_line
from orbax_bench_core.analysis.summary.straggler import Straggler
from orbax_bench_core.analysis.summary.verification import verification_lines
from orbax_bench_core.document import (
    Code,
    Column,
    Details,
    Document,
    Element,
    Facts,
    Filter,
    Group,
    Heading,
    Items,
    Only,
    Paragraph,
    Role,
    Row,
    Section,
    Span,
    Table,
    count,
    digits,
    num_bytes,
    percent,
    seconds,
)
from orbax_bench_core.measure import (
    BLOCKED,
    LOST,
    LOST_STEPS,
    SAVE_SHARE,
    STEP_MAX,
    STEP_MEDIAN,
    STEP_P99,
    STEPS,
)
from orbax_bench_core.records import Record, RunInfo, Series, code_of, short_names, varying

_MOST_REPEATS: Final = 10
OPERATION_HEADINGS = ("operation", "n", "median", "spread", "min", "max", "GiB/s")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExtraColumns:
    """Columns that another room adds to the tables of operations.

    Attributes:
        headings: Their headings; empty when there is nothing to add.
        cells: Their cells by point id and operation; dashes stand where there are none.
        notes: A sentence on an operation, by point id and operation.
        legend: What the columns mean, for below a table.
    """

    headings: tuple[str, ...] = ()
    cells: Mapping[tuple[str, str], tuple[str, ...]] = dataclasses.field(default_factory=dict)
    notes: Mapping[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    legend: str = ""


NO_EXTRA: Final = ExtraColumns()

_CHARTED: Final = ("n", "median", "spread", "GiB/s")
_HOW_TO_READ: Final = (
    "Each dot is a repeat, on its slowest host; the band is the middle half of them, the stroke "
    "the median, on a log scale per operation. The spread is the interquartile range over the "
    "median; GiB/s is all bytes over all seconds; memory is what the operation added to the peak "
    "of its process, in the median. The fastest point is first; a heading sorts."
)
_STAGES: Final = (
    "Medians of the stages that Orbax times, laid end to end; the stroke is the median of the "
    "whole. Stages may run side by side: then they reach beyond it. What no stage has is elsewhere."
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A sentence on a point.

    Attributes:
        text: The sentence.
        serious: Whether it says that a number is not what it claims to be.
        operation: The operation that it is about.
    """

    text: str
    serious: bool
    operation: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PointTable:
    """One point.

    Attributes:
        point_id: Its id.
        name: Its name.
        operations: Its operations.
        rows: One row of cells per operation, with the columns of `headings`.
        remarks: What else there is to say.
    """

    point_id: str
    name: str
    operations: tuple[OperationSummary, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[Remark, ...]


def headings(extra: ExtraColumns) -> tuple[str, ...]:
    """Returns the columns of a run's tables."""
    return (*OPERATION_HEADINGS, *extra.headings)


def point_tables(summary: RunSummary, extra: ExtraColumns) -> list[PointTable]:
    """Returns one table per point that has an operation."""
    costs = {**_training_costs(summary), **_tails(summary)}
    return [
        _point_table(point_id, name, tuple(operations), extra, costs)
        for (point_id, name), operations in itertools.groupby(
            summary.operations,
            key=lambda operation: (operation.time.point_id, operation.time.point),
        )
    ]


def _training_costs(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Returns what a save cost the training that went on, by point id and operation."""
    medians = {
        (metric.point_id, metric.operation, metric.metric): metric.median
        for metric in summary.metrics
    }
    return {
        (point_id, operation): (
            f"{operation}: cost the training {seconds(lost)} "
            f"({medians[point_id, operation, LOST_STEPS.name]:.3g} steps), of which it stood still "
            f"for {seconds(medians[point_id, operation, BLOCKED.name])}"
        )
        for (point_id, operation, metric), lost in medians.items()
        if metric == LOST.name
    }


def _tails(summary: RunSummary) -> dict[tuple[str, str], str]:
    """Returns what the slowest steps of a training took, by point id and operation."""
    medians = {
        (metric.point_id, metric.operation, metric.metric): metric.median
        for metric in summary.metrics
    }
    return {
        (point_id, operation): (
            f"{operation}: of {medians[point_id, operation, STEPS.name]:.0f} steps, the median "
            f"took {seconds(medians[point_id, operation, STEP_MEDIAN.name])}, the 99th percentile "
            f"{seconds(p99)}, the longest {seconds(medians[point_id, operation, STEP_MAX.name])}; "
            f"{percent(medians[point_id, operation, SAVE_SHARE.name])} of their time went beyond "
            "the median"
        )
        for (point_id, operation, metric), p99 in medians.items()
        if metric == STEP_P99.name
    }


def _point_table(
    point_id: str,
    name: str,
    operations: tuple[OperationSummary, ...],
    extra: ExtraColumns,
    costs: Mapping[tuple[str, str], str],
) -> PointTable:
    rows: list[tuple[str, ...]] = []
    remarks: list[Remark] = []
    nothing = ("–",) * len(extra.headings)
    for operation in operations:
        key = (point_id, operation.time.operation)
        say = functools.partial(_say, remarks, operation.time.operation)
        rows.append((*operation_cells(operation), *extra.cells.get(key, nothing)))
        if operation.flag is not None:
            say(operation.flag, serious=True)
        if operation.store:
            said = f"{operation.time.operation}: {operation.store}"
            say(said, serious=True)
        if key in extra.notes:
            said = f"{operation.time.operation}: {extra.notes[key]}"
            say(said, serious=False)
        if key in costs:
            say(costs[key], serious=False)
        if operation.straggler is not None:
            said = straggler_sentence(operation.time.operation, operation.straggler)
            say(said, serious=False)
    return PointTable(
        point_id=point_id,
        name=name,
        operations=operations,
        rows=tuple(rows),
        remarks=tuple(remarks),
    )


def _say(remarks: list[Remark], operation: str, text: str, *, serious: bool) -> None:
    remarks.append(Remark(text=text, serious=serious, operation=operation))


def summary_document(
    info: RunInfo,
    summary: RunSummary,
    example: Record | None = None,
    extra: ExtraColumns = NO_EXTRA,
    answer: Document | None = None,
    files: Mapping[str, str] | None = None,
) -> Document:
    """Returns the summary of a run for people.

    Args:
        info: The run.
        summary: Its summary.
        example: Any of its records; None where there is none.
        extra: Columns for the tables of operations.
        answer: What stands above the tables, such as which options to take; None for nothing.
        files: What else lies beside the page, by name, with what it is.
    """
    brief = () if answer is None else answer.brief or answer.elements
    above = () if answer is None else answer.elements
    return Document(
        title=info.suite_name,
        elements=_page(info, summary, example, extra, above, files or {}),
        brief=(*brief, *summary_elements(summary, extra)),
        escape=False,
    )


def notes_document(info: RunInfo) -> Document:
    """Returns what a reader of the suite should know: notes, and combinations that are skipped."""
    notes = [_wrapped("note:", "unsure", note) for note in info.expansion.notes]
    notes += [
        _wrapped("skipped:", "unsure", f"{skip.point.name}: {skip.reason}")
        for skip in info.expansion.skipped
    ]
    return Document(title=info.suite_name, elements=tuple(notes))


def summary_elements(summary: RunSummary, extra: ExtraColumns = NO_EXTRA) -> tuple[Element, ...]:
    """Returns what a terminal shows: every operation, then what failed or was skipped."""
    elements: list[Element] = []
    tables = point_tables(summary, extra)
    if tables:
        legend = (
            "Median, interquartile spread over the median, fastest and slowest of n repeats, each "
            "on its slowest host; GiB/s is all bytes over all seconds."
        )
        elements.append(_operations(tables, extra))
        elements += [
            Paragraph(said, "dim", fold="wrapped") for said in (legend, extra.legend) if said
        ]
    if not summary.points:
        elements.append(Paragraph("No repeat has a record yet."))
    for line, serious in verification_lines(summary.points):
        mark = Span("!", "bad") if serious else ""
        elements.append(Paragraph(Span(line), "plain" if serious else "dim", mark=mark))
    options = effects_line(summary.points)
    if options:
        elements.append(Paragraph(Span(options), "dim", fold="wrapped"))
    for point in summary.points:
        name = f"{point.point} {point.point_id}"
        if point.flag is not None:
            elements.append(Paragraph(Span(f"{name}: {point.flag}"), mark=Span("!", "bad")))
        if point.not_alone:
            elements.append(Paragraph(Span(f"{name}: {_beside(point)}"), mark=Span("!", "bad")))
        if point.failed:
            total = point.failed + point.passed + point.skipped
            said = f"{name}: {point.failed} of {total} repeats: {point.reason}"
            elements.append(_wrapped("failed:", "bad", said))
        elif point.skipped:
            elements.append(_wrapped("skipped:", "unsure", f"{name}: {point.reason}"))
    elements += _retries(summary.points)
    elements += [_wrapped("left out:", "bad", line) for line in summary.left_out]
    return tuple(elements)


def _page(
    info: RunInfo,
    summary: RunSummary,
    example: Record | None,
    extra: ExtraColumns,
    answer: tuple[Element, ...],
    files: Mapping[str, str],
) -> tuple[Element, ...]:
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
        *answer,
        Only("html", charts(info, summary, tables, extra)),
        Only("markdown", (Heading("Time per operation"), Paragraph(computed))),
        Only("markdown", (_operations(tables, extra),)),
        *((Paragraph(extra.legend, "dim"),) if extra.legend else ()),
        Only("markdown", _remarks(tables)),
        Section(
            "What did not pass",
            (*(_problems(problems) if problems else ()), *_retries(summary.points)),
        ),
        Section("Verification", _verification(summary.points)),
        Section("Options in effect", effects_elements(summary.points)),
        Section("Notes", _notes(info, summary)),
        Heading("What it ran on"),
        Facts(tuple((label, Span(fact)) for label, fact in _facts(example, summary.hosts).items())),
        Only("html", (Section("Files beside this page", _files(files)),)),
    )


def charts(
    info: RunInfo, summary: RunSummary, tables: Sequence[PointTable], extra: ExtraColumns
) -> tuple[Element, ...]:
    """Returns every operation over the points, with a dot per repeat, and where its time went."""
    series = [one for entry in info.expansion.points for one in Series.all_of(entry)]
    shown = {table.point_id for table in tables}
    series = [one for one in series if one.id in shown]
    rows = _chart_rows(tables, summary, short_names(series))
    columns = (
        Column("point"),
        *(Column(heading, "number") for heading in (*_CHARTED, *extra.headings, "memory")),
    )
    groups = (
        [repeats_group(operation, found) for operation, found in rows.items()]
        if len(tables) > 1
        else [repeats_group(table.name, _by_operation(rows)) for table in tables]
    )
    empty = "No repeat has passed."
    table = Table(columns, groups=tuple(groups), plots="repeats", sorts=True, empty=empty)
    stages = tuple(stage_elements(summary, rows))
    names = {one.id: f"{one.name} {one.id}" for one in series}
    bar = (Filter("points", names, varying(series)),) if len(series) > 1 else ()
    return (
        *bar,
        Heading("Time per operation"),
        Paragraph(_HOW_TO_READ, "dim"),
        table,
        Section("Where the time went", stages, lead=(Paragraph(_STAGES, "dim"),)),
    )


def _chart_rows(
    tables: Sequence[PointTable], summary: RunSummary, names: Mapping[str, str]
) -> dict[str, list[ChartRow]]:
    """Returns the rows of each operation, the fastest first."""
    memory = memory_cells(summary)
    rows: dict[str, list[ChartRow]] = {}
    for table in tables:
        for operation, cells in zip(table.operations, table.rows, strict=True):
            name = operation.time.operation
            row = ChartRow(
                key=table.point_id,
                label=names[table.point_id].replace(",", ", "),
                operation=operation,
                cells=(*_charted(cells), memory.get((table.point_id, name), "–")),
                flags=_said(table, name, serious=True),
                notes=_said(table, name, serious=False),
            )
            rows.setdefault(name, []).append(row)
    for found in rows.values():
        found.sort(key=lambda row: row.operation.time.median)
    return rows


def _said(table: PointTable, operation: str, *, serious: bool) -> tuple[str, ...]:
    found = (said for said in table.remarks if said.operation == operation)
    return tuple(said.text for said in found if said.serious == serious)


def _charted(cells: Sequence[str]) -> Iterator[str]:
    """Yields the cells of a row that stand beside its plot, which has the fastest and slowest."""
    names = (*OPERATION_HEADINGS, *(None for _ in cells[len(OPERATION_HEADINGS) :]))
    for name, cell in zip(names, cells, strict=True):
        if name is None or name in _CHARTED:
            yield cell


def _by_operation(rows: Mapping[str, Sequence[ChartRow]]) -> list[ChartRow]:
    """Returns the rows of a single point, which are told apart by their operations."""
    return [
        dataclasses.replace(row, label=operation)
        for operation, found in rows.items()
        for row in found
    ]


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


def _operations(tables: Sequence[PointTable], extra: ExtraColumns) -> Table:
    operation, *numbers = headings(extra)
    groups = (
        Group(
            label=(Span(table.name, strong=True), " ", Span(table.point_id, "dim")),
            keys=(Span(table.name), Span(table.point_id)),
            rows=tuple(Row(tuple(map(Span, cells))) for cells in table.rows),
            remarks=tuple(
                Paragraph(Span(said.text), mark=Span("!", "bad"), indent=2)
                if said.serious
                else Paragraph(Span(said.text), "dim", indent=2)
                for said in table.remarks
            ),
        )
        for table in tables
    )
    return Table(
        (Column(operation), *(Column(heading, "number") for heading in numbers)),
        groups=tuple(groups),
        keys=("point", "id"),
        empty="No repeat has passed.",
    )


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


def _retries(points: Sequence[PointStatus]) -> tuple[Element, ...]:
    return tuple(
        _wrapped("retried:", "unsure", f"{point.point} {point.point_id}: {_retried(point)}")
        for point in points
        if point.retried
    )


def _retried(point: PointStatus) -> str:
    return (
        f"{point.retried} of {point.passed} repeats passed only when they were tried again, and "
        f"are among these times; the first attempt of the first: {point.retried_for}"
    )


def _beside(point: PointStatus) -> str:
    return (
        f"{point.not_alone} of {point.passed} repeats were not alone: another point of the run was "
        "measured on the same machine meanwhile, and both have part in these times"
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
        f"{point.point} {point.point_id}: {_beside(point)}"
        for point in summary.points
        if point.not_alone
    ]
    left_out = [f"left out: {line}" for line in summary.left_out]
    html = (*skipped, *flags, *left_out, *info.expansion.notes)
    markdown = (*skipped, *(f"! {text}" for text in (*flags, *left_out)), *info.expansion.notes)
    if not html:
        return ()
    return (
        Only("html", (Items(tuple(map(Span, html))),)),
        Only("markdown", (Items(tuple(map(Span, markdown))),)),
    )


def _facts(example: Record | None, hosts: Sequence[str]) -> dict[str, str]:
    """Returns what the run ran on, as label and text."""
    if example is None:
        return {}
    provenance = example.provenance
    host, devices = provenance["host"], provenance["devices"]
    facts = {
        "host": f"{host['name']}, {host['cpu']}, {host['cpu_count']} CPUs, "
        f"{num_bytes(host['memory_bytes'])} memory",
        **({"hosts": "; ".join(hosts)} if hosts else {}),
        "kernel": host["kernel"],
        "versions": ", ".join(f"{name} {v}" for name, v in provenance["versions"].items()),
        "code under test": code_of(example).words,
        "orbax-bench": f"{provenance['git']['commit']}, dirty: {provenance['git']['dirty']}",
    }
    if isinstance(devices, dict):
        facts["devices"] = f"{devices['count']} x {devices['kind']} ({devices['platform']})"
    if example.state is not None:
        facts["checkpoint size"] = num_bytes(example.state.num_bytes)
    return facts


def _wrapped(mark: str, role: Role, text: str) -> Paragraph:
    return Paragraph(Span(text), mark=Span(mark, role), fold="wrapped")


def operation_cells(operation: OperationSummary) -> tuple[str, ...]:
    """Returns one table row, with the columns of `OPERATION_HEADINGS`."""
    time = operation.time
    return (
        time.operation,
        str(time.n),
        seconds(time.median),
        percent(time.spread),
        seconds(time.minimum),
        seconds(time.maximum),
        "–" if operation.throughput is None else digits(operation.throughput),
    )


def straggler_sentence(operation: str, straggler: Straggler) -> str:
    """Returns which host the others waited for in an operation, and in which stage."""
    said = (
        f"{operation}: host {straggler.host} was slowest in {straggler.slowest} of "
        f"{straggler.repeats} repeats; the slowest host took {seconds(straggler.excess_s)} more "
        "than the median host"
    )
    if straggler.stage is None:
        return said
    return f"{said}, most of it in {straggler.stage} (+{seconds(straggler.stage_excess_s)})"
