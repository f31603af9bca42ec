"""Figures that the gate must reach: every claim, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perf.gate import excess, statements, times
from perf.gate.cells import Cell, Tally
from perf.gate.claims import Claim
from perf.gate.rules import ALONE, QUICK_SIGMAS, SIGMAS, time_cell
from perf.gate.sources import Source, Sources


def claims(sources: Sources, series: int, *, quick: bool = False) -> list[Claim]:
    """Returns everything that is claimed of the gate, each with the cell that shows it.

    Args:
        sources: What it is tried on.
        series: Comparisons per cell; what takes long, or is far from its limit, has fewer.
        quick: Whether to leave out cells that others nearly repeat.
    """
    half, few = max(1, series // 2), max(1, series // 4)
    return [
        *times.levels(sources, series),
        *times.power(sources, half),
        *times.lives(sources, series, quick=quick),
        *times.processes(max(1, few // 2) if quick else half),
        *times.carry_over(max(1, few // 4) if quick else half),
        *times.first_look(max(1, few // 4) if quick else half),
        *times.foil(series),
        *excess.stalls(series),
        *excess.failures(series),
        *excess.points(few),
        *statements.detectable(series, QUICK_SIGMAS if quick else SIGMAS),
        *statements.shared(half),
        *statements.intervals(half),
        *times.faster(sources, series),
        *times.floor(series),
    ]


def cells(found: Sequence[Claim], sources: Sources, series: int) -> list[Cell]:
    """Returns everything to try out, each once, with what the rules of other tools say."""
    every = [cell for claim in found for cell in (claim.cell, *claim.also)]
    every += [_rival(source, max(1, series // 2)) for source in sources.judged]
    longest: dict[str, Cell] = {}
    for cell in every:
        if cell.key not in longest or longest[cell.key].series < cell.series:
            longest[cell.key] = cell
    return list(longest.values())


def rival_table(
    tallies: Mapping[str, Tally], sources: Sources, series: int
) -> dict[str, dict[str, float]]:
    """Returns the share of false alarms at a ratio of 1.00, by rule and source."""
    found: dict[str, dict[str, float]] = {}
    for source in sources.judged:
        cell = _rival(source, series)
        for rule, rate in tallies[cell.key].counts.items():
            found.setdefault(rule, {})[cell.name] = rate / tallies[cell.key].series
    for source in sources.judged:
        alone = Cell(kind="test alone", source=source, series=series, rule=ALONE)
        for name, cell in (
            ("paired test, alpha 1 %", alone),
            ("paired gate, defaults", time_cell(source, 1.0, series)),
        ):
            found.setdefault(name, {})[cell.name] = tallies[cell.key].rate("regression")
    return found


def _rival(source: Source, series: int) -> Cell:
    return Cell(kind="rivals", source=source, series=series)
