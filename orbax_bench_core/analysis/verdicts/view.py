"""Verdicts in the terminal."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.figures import (
    drawn_operations,
    interval_panel,
    operation_panels,
    panel_svg,
    plot_files,
    plotted_points,
)
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.words import (
    headline,
    nearest_to_trouble,
    primary_first,
    unmatched_line,
    worst_first,
)
from orbax_bench_core.document import figures, shorten
from orbax_bench_core.gate import Word

if TYPE_CHECKING:
    from markupsafe import Markup


WIDE: Final = 110
"""Columns from which on there is room for advice beside the numbers."""

MANY: Final = 8
"""Number of points above which those that pass have one line each."""

_HEADINGS: Final = ("operation", "ratio", "95 % interval", "verdict")


def verdict_table(report: VerdictReport, console: Console) -> None:
    """Prints a comparison: its verdict, then every point, the worst first, and how to read it.

    A wide terminal shows a table with advice beside the numbers; a narrow one, or what is no
    terminal, plain lines. When there are many points, those that pass have one line each.

    Args:
        report: The comparison.
        console: Where to.
    """
    points = worst_first(report.points)
    short = [point for point in points if len(points) > MANY and point.word == "PASS"]
    long = points[: len(points) - len(short)]
    rows = [row for point in long for row in _rows(point)]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *_cells(rows), strict=True)]
    for point in long:
        _print_point(point, widths, console)
    if short:
        _say(f"[bold]{len(short)} points pass[/], each with its highest ratio:", console)
    _print_briefly(short, console)
    for found in report.unmatched:
        _say(escape(unmatched_line(found)), console, first="[yellow]![/]")
    for note in report.notes:
        _say(escape(note), console, first="[yellow]note:[/]")
    if any(not row.found.primary for row in rows):
        _say(
            "[dim]In (parentheses): operations that are not primary; they decide nothing.[/]",
            console,
        )
    _say(
        f"[dim]Ratio: candidate ({escape(report.candidate)}) over baseline "
        f"({escape(report.baseline)}); above 1 is slower.[/]",
        console,
    )
    _say(f"{_word(report.word)}: {escape(headline(report))}", console)


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    found: OperationVerdict
    cells: tuple[str, str, str, str]


def _rows(point: PointVerdict) -> Iterator[_Row]:
    for found in primary_first(point):
        verdict = found.verdict
        unpaired = " unpaired" if point.mode == "unpaired" else ""
        yield _Row(
            found,
            (
                found.operation,
                words.ratio(verdict.ratio),
                words.interval(verdict),
                f"{words.MARKS[verdict.word]} {words.word_of(found)}{unpaired}",
            ),
        )


def _cells(rows: Sequence[_Row]) -> list[tuple[str, str, str, str]]:
    return [row.cells for row in rows]


def _print_point(point: PointVerdict, widths: Sequence[int], console: Console) -> None:
    """Prints the name and verdict of a point, then its operations."""
    _say(
        f"[bold]{escape(point.point)}[/] [dim]{escape(point.point_id)}, {words.design(point)}[/]",
        console,
        first=_word(point.word),
    )
    mark = "[red]failed:[/] " if point.failed else "[dim]note:[/] "
    for remark in words.remarks(point):
        _say(f"{mark}{escape(remark)}", console, indent=2)
        mark = "[dim]note:[/] "
    rows = list(_rows(point))
    if console.is_terminal and console.width >= WIDE:
        if rows:
            console.print(_table(rows, widths))
    else:
        for row in rows:
            _print_row(row, widths, console)
        for advice, operations in _advice(rows).items():
            _say(f"{escape(', '.join(operations))}: {escape(advice)}", console, indent=2, first="→")
    console.print()


def _table(rows: Sequence[_Row], widths: Sequence[int]) -> Padding:
    """Returns the operations of a point as a table, as wide as those of the other points."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    for index, (heading, width) in enumerate(zip(_HEADINGS, widths, strict=True)):
        right = index == 1
        table.add_column(heading, width=width, no_wrap=True, justify="right" if right else "left")
    table.add_column("what to do", ratio=1, overflow="fold")
    for row in rows:
        cells = [escape(cell) for cell in row.cells]
        cells[3] = f"[{_style(row.found)}]{cells[3]}[/]"
        said = [escape(words.what_to_do(row.found))]
        said += [f"[yellow]![/] {escape(flag)}" for flag in words.flags(row.found)]
        style = None if row.found.primary else "dim"
        table.add_row(*cells, "\n".join(filter(None, said)), style=style)
    return Padding(table, (0, 0, 0, 2))


def _print_row(row: _Row, widths: Sequence[int], console: Console) -> None:
    operation, ratio, interval, word = (escape(cell) for cell in row.cells)
    # Padded before it is escaped, for a backslash of markup takes no column.
    operation = operation + " " * (widths[0] - len(row.cells[0]))
    ratio = " " * (widths[1] - len(row.cells[1])) + ratio
    interval = interval + " " * (widths[2] - len(row.cells[2]))
    plain = f"{operation}  {ratio}  {interval}  [{_style(row.found)}]{word}[/]"
    dim = "" if row.found.primary else "[dim]"
    _say(f"{dim}{plain}", console, indent=2)
    for flag in words.flags(row.found):
        _say(f"{dim}{escape(flag)}", console, indent=4, first="[yellow]![/]")


def _advice(rows: Sequence[_Row]) -> dict[str, list[str]]:
    """Returns each advice with the operations that it is for, primary ones only if they pass."""
    given: dict[str, list[str]] = {}
    for row in rows:
        advice = words.what_to_do(row.found)
        if advice and (row.found.primary or row.found.verdict.word != "PASS"):
            given.setdefault(advice, []).append(row.found.operation)
    return given


def _print_briefly(points: Sequence[PointVerdict], console: Console) -> None:
    """Prints points that pass on one line each, with their numbers in columns."""
    cells = [_brief_cells(point) for point in points]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for point, numbers in zip(points, cells, strict=True):
        padded = (cell.ljust(width) for cell, width in zip(numbers, widths, strict=True))
        flagged = sum(len(words.flags(operation)) for operation in point.operations)
        remark = f" [yellow]! {flagged} flag{'' if flagged == 1 else 's'}[/]" if flagged else ""
        _say(
            f"{escape(point.point)} [dim]{escape(point.point_id)}[/]{remark}",
            console,
            indent=2,
            first=f"{_word(point.word)} {escape('  '.join(padded))}".rstrip(),
        )


def _brief_cells(point: PointVerdict) -> tuple[str, ...]:
    found = nearest_to_trouble(point)
    unpaired = "unpaired" if point.mode == "unpaired" else ""
    if found is None:
        return ("", "", "", unpaired)
    return (
        found.operation,
        words.ratio(found.verdict.ratio),
        words.interval(found.verdict),
        unpaired,
    )


def _style(found: OperationVerdict) -> str:
    style = words.STYLES[found.verdict.word]
    return style if found.primary else f"dim not bold {style.removeprefix('bold ')}"


def _word(word: Word) -> str:
    return f"[{words.STYLES[word]}]{words.MARKS[word]} {word}[/]"


def _say(markup: str, console: Console, *, indent: int = 0, first: str = "") -> None:
    """Prints a line; a terminal wraps it under itself, a log keeps it whole.

    Args:
        markup: The line.
        console: Where to.
        indent: Columns before it.
        first: Markup that stands before it, under which nothing is wrapped.
    """
    if not console.is_terminal:
        first = f"{first} " if first else ""
        console.print(f"{' ' * indent}{first}{markup}", highlight=False, soft_wrap=True)
        return
    line = Table.grid(padding=(0, 1, 0, 0))
    cells = [first, markup] if first else [markup]
    for _ in cells:
        line.add_column(overflow="fold")
    line.add_row(*cells)
    console.print(Padding(line, (0, 0, 0, indent), expand=False), highlight=False)


HEADINGS: Final = ("metric", "ratio", "95 % interval", "verdict", "what to do")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation as cells with the columns of `HEADINGS`, and what speaks against it."""

    word: str
    primary: bool
    cells: tuple[str, ...]
    flags: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One point."""

    point: PointVerdict
    mark: str
    design: str
    remarks: tuple[str, ...]
    rows: tuple[Row, ...]


def render(template: str, report: VerdictReport, filters: dict[str, Callable[..., Any]]) -> str:
    """Returns a page.

    Args:
        template: File name of the template.
        report: The comparison.
        filters: What the template calls.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orbax_bench_core.document"),
        autoescape=template.endswith(".html.jinja"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(
        report=report,
        mark=words.MARKS[report.word],
        headline=headline(report),
        headings=HEADINGS,
        sections=[_section(point) for point in worst_first(report.points)],
        unmatched=[unmatched_line(found) for found in report.unmatched],
        meanings=words.MEANINGS,
        reading=words.READING,
        rules=words.rules(report.gate),
    )


def _section(point: PointVerdict) -> Section:
    return Section(
        point=point,
        mark=words.MARKS[point.word],
        design=words.design(point),
        remarks=tuple(words.remarks(point)),
        rows=tuple(_row(found, point) for found in primary_first(point)),
    )


def _row(found: OperationVerdict, point: PointVerdict) -> Row:
    verdict = found.verdict
    unpaired = " unpaired" if point.mode == "unpaired" else ""
    return Row(
        word=verdict.word,
        primary=found.primary,
        cells=(
            found.operation,
            words.ratio(verdict.ratio),
            words.interval(verdict),
            f"{words.MARKS[verdict.word]} {words.word_of(found)}{unpaired}",
            words.what_to_do(found),
        ),
        flags=tuple(words.flags(found)),
    )


_LONGEST: Final = 120


def verdicts_markdown(report: VerdictReport, *, plots: str | None) -> str:
    """Returns `verdicts.md`: the verdict, every point, and how to read them.

    Args:
        report: The comparison.
        plots: Link from the page to the folder into which `write_plots` wrote; None leaves figures
            out.
    """
    plotted = {point.point_id for point in plotted_points(report)}

    def images(point: PointVerdict) -> list[str]:
        if plots is None or point.point_id not in plotted:
            return []
        folder = quote(plots.rstrip("/"), safe="/:.")
        return [
            f"![{_prose(shorten(file.title, _LONGEST))}]({folder}/{quote(file.name)})"
            for file in plot_files(report, point)
        ]

    return render(
        "verdicts.md.jinja",
        report,
        {"code": _code_span, "prose": _prose, "prose_cell": _prose_cell, "images": images},
    )


def _code_span(text: str) -> str:
    """Returns a name as a code span, in which nothing is markup, for a table or elsewhere."""
    plain = " ".join(text.split()).replace("|", "\\|")
    longest = max(map(len, re.findall("`+", plain)), default=0)
    fence = "`" * (longest + 1)
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{space}{plain}{space}{fence}"


def _prose(text: str) -> str:
    """Returns a sentence on one line, in which only backticks are markup."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\*\[\]])", r"\\\1", plain)


def _prose_cell(text: str) -> str:
    """Returns a sentence as the cell of a table, which a bar would end."""
    return _prose(text).replace("|", "\\|")


def verdicts_html(report: VerdictReport) -> str:
    """Returns `verdicts.html`: the verdict, every point, figures, and how to read them.

    It follows the reader's choice of light or dark. When there are very many points, only the worst
    have figures, and the page says so.

    Args:
        report: The comparison.
    """
    plotted = {point.point_id for point in plotted_points(report)}

    def drawings(point: PointVerdict) -> list[Markup]:
        return _drawings(report, point) if point.point_id in plotted else []

    return render(
        "verdicts.html.jinja",
        report,
        {"code": _marked_code, "drawings": drawings, "variables": figures.variables},
    )


def _drawings(report: VerdictReport, point: PointVerdict) -> list[Markup]:
    from markupsafe import Markup

    panels = [interval_panel(report, point)]
    for found in drawn_operations(report, point):
        panels += operation_panels(report, found)
    # Nothing of the user's is in it that was not escaped when it was drawn.
    return [Markup(panel_svg(panel)) for panel in panels]  # noqa: S704


def _marked_code(text: str) -> Markup:
    """Returns text whose parts in backticks are set as code."""
    from markupsafe import Markup, escape

    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(marked)  # noqa: S704
