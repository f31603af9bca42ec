"""A run's results in the terminal."""

from __future__ import annotations

import itertools

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orbax_bench_core.report.text import OPERATION_HEADINGS, operation_cells, straggler_sentence
from orbax_bench_core.results.run_directory import RunInfo
from orbax_bench_core.results.summary import RunSummary

_INDENT = 2


def print_notes(info: RunInfo, console: Console) -> None:
    """Prints what a reader of the suite should know: notes, and combinations that are skipped."""
    for note in info.expansion.notes:
        console.print(f"[yellow]note:[/] {escape(note)}")
    for skip in info.expansion.skipped:
        console.print(f"[yellow]skipped:[/] {escape(skip.point.name)}: {escape(skip.reason)}")


def print_summary(summary: RunSummary, console: Console) -> None:
    """Prints every operation of every point, then what failed or was skipped."""
    _print_operations(summary, console)
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


def _print_operations(summary: RunSummary, console: Console) -> None:
    """Prints one heading per point and one line per operation, in columns that line up."""
    rows = [operation_cells(operation) for operation in summary.operations]
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(OPERATION_HEADINGS, *rows, strict=True)]
    console.print(_table([OPERATION_HEADINGS], widths, style="dim"))
    for (point_id, name), found in itertools.groupby(
        summary.operations, key=lambda operation: (operation.time.point_id, operation.time.point)
    ):
        console.print(f"[bold]{escape(name)}[/] [dim]{point_id}[/]", soft_wrap=True)
        operations = list(found)
        console.print(_table([operation_cells(operation) for operation in operations], widths))
        for operation in operations:
            if operation.flag is not None:
                console.print(f"  [red]![/] {escape(operation.flag)}", soft_wrap=True)
            if operation.straggler is not None:
                said = straggler_sentence(operation.time.operation, operation.straggler)
                console.print(f"  [dim]{escape(said)}[/]", soft_wrap=True)
    console.print(
        "[dim]Median, interquartile spread over the median, fastest and slowest of n repeats, each "
        "on its slowest host; GiB/s is all bytes over all seconds.[/]"
    )


def _table(rows: list[tuple[str, ...]], widths: list[int], style: str = "") -> Table:
    table = Table(box=box.SIMPLE, show_header=False, show_edge=False, style=style, pad_edge=False)
    table.add_column(width=_INDENT)
    for index, width in enumerate(widths):
        table.add_column(width=width, justify="left" if index == 0 else "right", style=style)
    for row in rows:
        table.add_row("", *row)
    return table
