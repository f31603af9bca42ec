"""Figures that the gate must reach: every claim, group by group."""

from collections.abc import Mapping, Sequence

from perf.gate import endings, excess, more, statements, times
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
        *times.processes(few if quick else half),
        *(() if quick else times.assumptions(half)),
        *times.carry_over(max(1, few // 2) if quick else half),
        *endings.endings(few if quick else half),
        *more.more(sources, few),
        *times.first_look(max(1, few // 2) if quick else half),
        *times.foil(series),
        *excess.stalls(series),
        *excess.limited_stalls(few),
        *excess.failures(series),
        *excess.points(few),
        *(
            # A share that is found is held from both sides, which takes more of them.
            statements.detectable(2 * series, QUICK_SIGMAS)
            if quick
            else statements.detectable(series, SIGMAS)
        ),
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
        rivals = tallies[_rival(source, series).key]
        alone = Cell(kind="test alone", source=source, series=series, rule=ALONE)
        rates = {rule: rivals.rate(rule) for rule in rivals.counts}
        rates["paired test, alpha 1 %"] = tallies[alone.key].rate("regression")
        default = time_cell(source, 1.0, series)
        rates["paired gate, defaults"] = tallies[default.key].rate("regression")
        for rule, rate in rates.items():
            found.setdefault(rule, {})[default.name] = rate
    return found


def _rival(source: Source, series: int) -> Cell:
    return Cell(kind="rivals", source=source, series=series)
