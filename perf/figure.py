"""Figures: rows and table of simulated ones, and how a command ends that prints some."""

import argparse
import dataclasses
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from perf import pairing

EXIT_MISSED: Final = 1
MARKS: Final[Mapping[bool | None, str]] = {True: "yes", False: "[red]NO[/]", None: "–"}

ERRORS: Final = 3.0
"""Monte Carlo errors by which a figure may miss its target: chance alone does in 1 of 700."""

_WIDTH: Final = 150


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure with its target."""

    group: str  # what kind of figure it is
    name: str  # on what data
    value: float  # what was found: a share, or a number
    error: float = 0.0  # its Monte Carlo standard error
    target: str = ""  # what it must be, in words; empty when it is only shown
    met: bool | None = None  # whether it is; None when it is only shown
    share: bool = True  # whether the value is a share


def shown(group: str, name: str, count: int, total: int) -> Figure:
    """Returns a share without a target."""
    value = count / total
    return Figure(group=group, name=name, value=value, error=standard_error(value, total))


def at_most(group: str, name: str, count: int, total: int, limit: float) -> Figure:
    """Returns a share that must not be above a limit, but for Monte Carlo error at that limit."""
    found, slack = shown(group, name, count, total), ERRORS * standard_error(limit, total)
    target = f"≤ {limit:.1%} + {slack:.1%}"
    return dataclasses.replace(found, target=target, met=found.value <= limit + slack)


def at_least(group: str, name: str, count: int, total: int, limit: float) -> Figure:
    """Returns a share that must not be below a limit, but for Monte Carlo error at that limit."""
    found, slack = shown(group, name, count, total), ERRORS * standard_error(limit, total)
    target = f"≥ {limit:.1%} - {slack:.1%}"
    return dataclasses.replace(found, target=target, met=found.value >= limit - slack)


def standard_error(share: float, total: int) -> float:
    """Returns the standard error of a share, never 0."""
    share = min(max(share, 1 / total), 1 - 1 / total)
    return math.sqrt(share * (1 - share) / total)


def figure_table(found: Sequence[Figure]) -> Table:
    """Returns the figures with their targets, in groups."""
    shown = Table("figure", "on", "value", "Monte Carlo error", "target", "met?")
    group = ""
    for figure in found:
        if group and figure.group != group:
            shown.add_section()
        first, group = figure.group != group, figure.group
        scale, digits, unit = (100, 2, " %") if figure.share else (1, 1, "")
        shown.add_row(
            group if first else "",
            figure.name,
            f"{scale * figure.value:.{digits}f}{unit}",
            f"± {scale * figure.error:.2f}{unit}",
            figure.target or "–",
            MARKS[figure.met],
        )
    return shown


def paired_table(figures: Sequence[pairing.Figure]) -> Table:
    """Returns paired figures: medians, with the smallest and largest in brackets."""
    shown = Table("figure", "ours", "beside", "ratio", "target", "met?")
    for figure in figures:
        limit = f"{figure.target:.3g}{' x' if figure.limits == 'ratio' else f' {figure.unit}'}"
        shown.add_row(
            f"{figure.name} ({figure.unit})",
            *map(_spread, (figure.ours, figure.upstream, figure.ratios)),
            "–" if math.isinf(figure.target) else f"≤ {limit}",
            MARKS[figure.met],
        )
    return shown


def _spread(values: Sequence[float] | None) -> str:
    if values is None:
        return "–"
    return f"{statistics.median(values):.3g} [{min(values):.3g}–{max(values):.3g}]"


def figure_parser(program: str, about: str | None, quick: str) -> argparse.ArgumentParser:
    """Returns the parser of a command that simulates figures; `quick` is the help of that flag."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    return parser


def positive(text: str) -> int:
    """Reads a whole number of at least 1 from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def end(figures: Sequence[Any], *tables: Table | str, file: Path | None, plain: object) -> int:
    """Prints tables of figures, writes the file that was asked for, and returns the exit code."""
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(*tables)
    if file is not None:
        file.write_text(json.dumps(plain, indent=1) + "\n")
    return EXIT_MISSED if any(figure.met is False for figure in figures) else 0


def end_simulated(figures: Sequence[Figure], file: Path | None) -> int:
    """Does the same for simulated figures, in their own table."""
    plain = [dataclasses.asdict(figure) for figure in figures]
    return end(figures, figure_table(figures), file=file, plain=plain)
