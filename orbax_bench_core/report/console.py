"""A run's results in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from orbax_bench_core.records.run_directory import RunInfo
from orbax_bench_core.report.operations_table import (
    LIMITS_LEGEND,
    NO_LIMITS,
    RunLimits,
    headings,
    point_tables,
)
from orbax_bench_core.results.summary import RunSummary


def print_notes(info: RunInfo, console: Console) -> None:
    """Prints what a reader of the suite should know: notes, and combinations that are skipped."""
    for note in info.expansion.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    for skip in info.expansion.skipped:
        console.print(f"[yellow]skipped:[/] {escape(skip.point.name)}: {escape(skip.reason)}")


def print_summary(summary: RunSummary, console: Console, limits: RunLimits = NO_LIMITS) -> None:
    """Prints every operation of every point, then what failed or was skipped.

    Args:
        summary: What the run found.
        console: Where to.
        limits: How near its operations come to their limits; empty when none were measured.
    """
    _print_operations(summary, console, limits)
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


def _print_operations(summary: RunSummary, console: Console, limits: RunLimits) -> None:
    """Prints one heading per point and one line per operation, in columns that line up."""
    tables = point_tables(summary, limits)
    if not tables:
        return
    columns = headings(limits)
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
    if limits:
        console.print(f"[dim]{LIMITS_LEGEND}[/]")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Returns one row: the first column to the left, numbers to the right."""
    padded = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  " + "  ".join(padded)
