"""Rows and table of simulated figures: a claimed bound, the value found, and its error."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from rich.table import Table

_TWO_SIDED: Final = 1.96


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure with its target.

    Attributes:
        group: What kind of figure it is.
        name: On what data.
        value: What was found: a share, or a number.
        error: Its Monte Carlo standard error.
        target: What it must be, in words; empty when it is only shown.
        met: Whether it is; None when it is only shown.
        share: Whether the value is a share.
    """

    group: str
    name: str
    value: float
    error: float
    target: str = ""
    met: bool | None = None
    share: bool = True


def at_most(group: str, name: str, count: int, total: int, limit: float) -> Figure:
    """Returns a share that must not be above a limit, but for Monte Carlo error at that limit."""
    slack = _TWO_SIDED * standard_error(limit, total)
    return Figure(
        group=group,
        name=name,
        value=count / total,
        error=standard_error(count / total, total),
        target=f"≤ {limit:.1%} + {slack:.1%}",
        met=count / total <= limit + slack,
    )


def at_least(group: str, name: str, count: int, total: int, limit: float) -> Figure:
    """Returns a share that must not be below a limit, but for Monte Carlo error at that limit."""
    slack = _TWO_SIDED * standard_error(limit, total)
    return Figure(
        group=group,
        name=name,
        value=count / total,
        error=standard_error(count / total, total),
        target=f"≥ {limit:.1%} - {slack:.1%}",
        met=count / total >= limit - slack,
    )


def shown(group: str, name: str, count: int, total: int) -> Figure:
    """Returns a share without a target."""
    value = count / total
    return Figure(group=group, name=name, value=value, error=standard_error(value, total))


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
            {True: "yes", False: "[red]NO[/]", None: "–"}[figure.met],
        )
    return shown
