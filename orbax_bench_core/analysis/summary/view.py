"""The operations of a run as every report shows them: one table per point, and remarks on it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from orbax_bench_core import document
from orbax_bench_core.analysis.summary.aggregate import OperationSummary, RunSummary
from orbax_bench_core.analysis.summary.straggler import Straggler
from orbax_bench_core.document import digits, percent, seconds
from orbax_bench_core.measure import BLOCKED, LOST, LOST_STEPS
from orbax_bench_core.records import Record, RunInfo


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A sentence on a point.

    Attributes:
        text: The sentence.
        serious: Whether it says that a number is not what it claims to be.
    """

    text: str
    serious: bool


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
    """Returns one table per point that has an operation.

    Args:
        summary: What the run found.
        extra: Columns that another room adds.
    """
    costs = _training_costs(summary)
    return [
        _point_table(point_id, name, tuple(operations), extra, costs)
        for (point_id, name), operations in itertools.groupby(
            summary.operations, key=lambda found: (found.time.point_id, found.time.point)
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


def _point_table(
    point_id: str,
    name: str,
    operations: tuple[OperationSummary, ...],
    extra: ExtraColumns,
    costs: Mapping[tuple[str, str], str],
) -> PointTable:
    rows, remarks = [], []
    nothing = ("–",) * len(extra.headings)
    for operation in operations:
        key = (point_id, operation.time.operation)
        rows.append((*operation_cells(operation), *extra.cells.get(key, nothing)))
        if operation.flag is not None:
            remarks.append(Remark(text=operation.flag, serious=True))
        if key in extra.notes:
            said = f"{operation.time.operation}: {extra.notes[key]}"
            remarks.append(Remark(text=said, serious=False))
        if key in costs:
            remarks.append(Remark(text=costs[key], serious=False))
        if operation.straggler is not None:
            said = straggler_sentence(operation.time.operation, operation.straggler)
            remarks.append(Remark(text=said, serious=False))
    return PointTable(
        point_id=point_id,
        name=name,
        operations=operations,
        rows=tuple(rows),
        remarks=tuple(remarks),
    )


def markdown_page(
    info: RunInfo, summary: RunSummary, example: Record | None, extra: ExtraColumns = NO_EXTRA
) -> str:
    """Returns `report.md`.

    Args:
        info: The run.
        summary: What it found.
        example: Any record of the run, for what it ran on; None when there is none.
        extra: Columns that another room adds.
    """
    return _render("report.md.jinja", info, summary, example, extra)


def html_page(
    info: RunInfo, summary: RunSummary, example: Record | None, extra: ExtraColumns = NO_EXTRA
) -> str:
    """Returns `report.html`, which needs no other file and no network.

    Args:
        info: The run.
        summary: What it found.
        example: Any record of the run, for what it ran on; None when there is none.
        extra: Columns that another room adds.
    """
    return _render("report.html.jinja", info, summary, example, extra)


def _render(
    template: str, info: RunInfo, summary: RunSummary, example: Record | None, extra: ExtraColumns
) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.document"),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["cell"] = document.table_cell
    return environment.get_template(template).render(
        info=info,
        headings=headings(extra),
        groups=_groups(summary, extra),
        limits_legend=extra.legend,
        problems=[point for point in summary.points if point.failed or point.skipped],
        flags=[f"{p.point} {p.point_id}: {p.flag}" for p in summary.points if p.flag is not None],
        facts=_facts(example),
    )


def _groups(summary: RunSummary, extra: ExtraColumns) -> list[dict[str, Any]]:
    slowest = max((op.time.maximum for op in summary.operations), default=0.0) or 1.0
    groups = []
    for table in point_tables(summary, extra):
        rows = [
            {
                "cells": cells,
                "low": 100 * operation.time.minimum / slowest,
                "median": 100 * operation.time.median / slowest,
                "high": 100 * operation.time.maximum / slowest,
            }
            for cells, operation in zip(table.rows, table.operations, strict=True)
        ]
        remarks = [f"! {said.text}" if said.serious else said.text for said in table.remarks]
        groups.append({"id": table.point_id, "name": table.name, "rows": rows, "remarks": remarks})
    return groups


def _facts(example: Record | None) -> dict[str, str]:
    """Returns what the run ran on, as label and text."""
    if example is None:
        return {}
    provenance = example.provenance
    host, devices = provenance["host"], provenance["devices"]
    facts = {
        "host": f"{host['name']}, {host['cpu']}, {host['cpu_count']} CPUs, "
        f"{document.num_bytes(host['memory_bytes'])} memory",
        "kernel": host["kernel"],
        "versions": ", ".join(f"{name} {v}" for name, v in provenance["versions"].items()),
        "code": f"{provenance['git']['commit']}, dirty: {provenance['git']['dirty']}",
    }
    if isinstance(devices, dict):
        facts["devices"] = f"{devices['count']} x {devices['kind']} ({devices['platform']})"
    if example.state is not None:
        facts["checkpoint size"] = document.num_bytes(example.state.num_bytes)
    return facts


def print_notes(info: RunInfo, console: Console) -> None:
    """Prints what a reader of the suite should know: notes, and combinations that are skipped."""
    for note in info.expansion.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    for skip in info.expansion.skipped:
        console.print(f"[yellow]skipped:[/] {escape(skip.point.name)}: {escape(skip.reason)}")


def print_summary(summary: RunSummary, console: Console, extra: ExtraColumns = NO_EXTRA) -> None:
    """Prints every operation of every point, then what failed or was skipped.

    Args:
        summary: What the run found.
        console: Where to.
        extra: Columns that another room adds.
    """
    _print_operations(summary, console, extra)
    if not summary.points:
        console.print("No repeat has a record yet.")
    for point in summary.points:
        name = f"{escape(point.point)} {point.point_id}"
        if point.flag is not None:
            console.print(f"[red]![/] {name}: {escape(point.flag)}", soft_wrap=True)
        if point.failed:
            total = point.failed + point.passed + point.skipped
            console.print(
                f"[red]failed:[/] {name}: {point.failed} of {total} repeats: {escape(point.reason)}"
            )
        elif point.skipped:
            console.print(f"[yellow]skipped:[/] {name}: {escape(point.reason)}")


def _print_operations(summary: RunSummary, console: Console, extra: ExtraColumns) -> None:
    """Prints one heading per point and one line per operation, in columns that line up."""
    tables = point_tables(summary, extra)
    if not tables:
        return
    columns = headings(extra)
    rows = [row for table in tables for row in table.rows]
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    console.print(f"[dim]{escape(_line(columns, widths))}[/]", soft_wrap=True)
    for table in tables:
        console.print(f"[bold]{escape(table.name)}[/] [dim]{table.point_id}[/]", soft_wrap=True)
        for row in table.rows:
            console.print(_line(row, widths), markup=False, highlight=False, soft_wrap=True)
        for remark in table.remarks:
            mark = "[red]![/] " if remark.serious else "[dim]"
            console.print(f"  {mark}{escape(remark.text)}", soft_wrap=True)
    console.print(
        "[dim]Median, interquartile spread over the median, fastest and slowest of n repeats, each "
        "on its slowest host; GiB/s is all bytes over all seconds.[/]"
    )
    if extra.legend:
        console.print(f"[dim]{extra.legend}[/]")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Returns one row: the first column to the left, numbers to the right."""
    padded = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  " + "  ".join(padded)


OPERATION_HEADINGS = ("operation", "n", "median", "spread", "min", "max", "GiB/s")


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
