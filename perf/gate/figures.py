"""Figures that the gate must reach: every claim, group by group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core.config import MAX_PRIMARY, GateRule
from perf.gate.cells import Cell, Tally
from perf.gate.claims import OPERATIONS, Claim, Sense
from perf.gate.designs import IN_TURNS, LIVES, ONE_WORKER, PER_ARM_PROCESS, Design, with_tau
from perf.gate.experiments import claimed
from perf.gate.replay import OPERATIONS as OPERATIONS_REPLAYED
from perf.gate.sources import Source, Sources

RULE: Final = GateRule()
ALONE: Final = GateRule(tolerance=0.0, looks=(20,))
"""One look with no tolerance: the level of the test itself."""

TWENTY: Final = GateRule(tolerance=0.0, looks=(10, 20), alpha=0.003, pass_alpha=0.015)
"""No tolerance, and nothing after 20 operations per arm: four looks spend as much by then."""

TOLERANCE: Final = 1 + RULE.tolerance
MARGIN: Final = 1 + RULE.margin
SLOWER: Final = 1.2
SOMEWHAT_SLOWER: Final = 1.1
FASTER: Final = 0.9

TAUS: Final = (0.0, 0.02, 0.05)
EXPECTED_TAU: Final = 0.02
"""The offset of a process that is to be expected; 5 % is what the design has to bear."""

SIGMAS: Final = (0.02, 0.05, 0.1, 0.2, 0.5)
QUICK_SIGMAS: Final = (0.05, 0.2, 0.5)

_POINTS: Final = 0.03
_LEVEL: Final = 0.01


def claims(sources: Sources, series: int, *, quick: bool = False) -> list[Claim]:
    """Returns everything that is claimed of the gate, each with the cell that shows it.

    Args:
        sources: What it is tried on.
        series: Comparisons per cell; what takes long, or is far from its limit, has fewer.
        quick: Whether to leave out cells that others nearly repeat.
    """
    half, few = max(1, series // 2), max(1, series // 4)
    return [
        *_levels(sources, series),
        *_power(sources, half),
        *_lives(sources, series, quick=quick),
        *_foil(series),
        *_stalls(series),
        *_failures(series),
        *_points(few),
        *_detectable(series, QUICK_SIGMAS if quick else SIGMAS),
        *_shared(half),
        *_intervals(half),
        *_faster(sources, series),
        *_floor(series),
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
            ("paired gate, defaults", _time(source, 1.0, series)),
        ):
            found.setdefault(name, {})[cell.name] = tallies[cell.key].rate("regression")
    return found


def _rival(source: Source, series: int) -> Cell:
    return Cell(kind="rivals", source=source, series=series)


def _time(source: Source, ratio: float, series: int, design: Design = ONE_WORKER) -> Cell:
    return Cell(kind="time", source=source, ratio=ratio, series=series, design=design)


def _levels(sources: Sources, series: int) -> list[Claim]:
    """Levels in one worker."""
    found = [
        Claim(
            group="one worker: the test alone at 1.00, N = 20, tolerance 0",
            cell=Cell(kind="test alone", source=source, series=series, rule=ALONE),
            seen="regression",
            sense="at most",
            limit=_LEVEL,
        )
        for source in sources.judged
    ]
    for ratio, seen, limit in (
        (1.0, "regression", _LEVEL),
        (TOLERANCE, "regression", _LEVEL),
        (MARGIN, "passes", 0.05),
    ):
        word = "REGRESSION" if seen == "regression" else "PASS"
        found += [
            Claim(
                group=f"one worker: {word} at {ratio:.2f}",
                cell=_time(source, ratio, series),
                seen=seen,
                sense="at most",
                limit=limit,
            )
            for source in sources.all
        ]
    return found


def _power(sources: Sources, series: int) -> list[Claim]:
    """Power and length in one worker; a comparison without a verdict counts with all its 60."""
    found = []
    for source in sources.all:
        sense: Sense = "at least" if source in sources.judged else "shown"
        cell = _time(source, SLOWER, series)
        group = f"one worker: power at {SLOWER:.2f}"
        found.append(Claim(group=group, cell=cell, seen="regression", sense=sense, limit=0.95))
    twenty = Cell(kind="time", ratio=SOMEWHAT_SLOWER, series=series, rule=TWENTY)
    group = f"one worker: power at {SOMEWHAT_SLOWER:.2f}, N = 20, tolerance 0"
    found.append(Claim(group=group, cell=twenty, seen="regression", sense="at least", limit=0.8))
    limits = {"iid": 12.0}
    for ratio in (1.0, SLOWER):
        for source in sources.all:
            cell = _time(source, ratio, series)
            limit = limits.get(cell.name)
            found.append(
                Claim(
                    group=f"one worker: operations per arm at {ratio:.2f}",
                    cell=cell,
                    seen=OPERATIONS,
                    sense="shown" if limit is None else "at most",
                    limit=limit or 0.0,
                )
            )
        wild, *others = (_time(source, ratio, series) for source in sources.wild)
        found.append(
            Claim(
                group=f"one worker: operations per arm at {ratio:.2f}",
                name="slow states to CV 50 %, all operations",
                cell=wild,
                also=tuple(others),
                seen=OPERATIONS,
                sense="at most",
                limit=35,
            )
        )
    return found


def _lives(sources: Sources, series: int, *, quick: bool) -> list[Claim]:
    """Levels, power and length where the worker process is the unit of randomisation."""
    found = []
    half = max(1, series // 2)
    for base in (LIVES, IN_TURNS):
        for tau in TAUS:
            design = with_tau(base, tau)
            for source in sources.measured:
                level = _time(source, TOLERANCE, series, design)
                passes = _time(source, MARGIN, half, design)
                group = f"{design.title}: REGRESSION at {TOLERANCE:.2f}"
                found.append(
                    Claim(group=group, cell=level, seen="regression", sense="at most", limit=_LEVEL)
                )
                group = f"{design.title}: PASS at {MARGIN:.2f}"
                found.append(
                    Claim(group=group, cell=passes, seen="passes", sense="at most", limit=0.05)
                )
            if tau == EXPECTED_TAU or not quick:
                found += _lives_length(sources, half, design)
    return found


def _lives_length(sources: Sources, series: int, design: Design) -> list[Claim]:
    found = []
    for source in sources.measured:
        made_up = source in sources.regimes
        same = _time(source, 1.0, series, design)
        group = f"{design.title}: operations per arm at 1.00"
        expected = made_up and design == with_tau(LIVES, EXPECTED_TAU)
        found.append(
            Claim(
                group=group,
                cell=same,
                seen=OPERATIONS,
                sense="at most" if expected else "shown",
                limit=22,
            )
        )
        slower = _time(source, SLOWER, series, design)
        group = f"{design.title}: power at {SLOWER:.2f}"
        must = made_up or not design.in_turns
        found.append(
            Claim(
                group=group,
                cell=slower,
                seen="regression",
                sense="at least" if must else "shown",
                limit=0.95,
            )
        )
    for operation in OPERATIONS_REPLAYED:
        replayed = [one for one in sources.real if one.name.endswith(operation)]
        first, *others = (_time(source, 1.0, series, design) for source in replayed)
        found.append(
            Claim(
                group=f"{design.title}: operations per arm at 1.00",
                name=f"replayed {operation}s",
                cell=first,
                also=tuple(others),
                seen=OPERATIONS,
                sense="at most" if design == with_tau(LIVES, EXPECTED_TAU) else "shown",
                limit=30,
            )
        )
    return found


def _foil(series: int) -> list[Claim]:
    """What one process per arm does: with an offset to be expected it breaks its level."""
    found = []
    for tau in TAUS:
        cell = _time("iid", TOLERANCE, series, with_tau(PER_ARM_PROCESS, tau))
        foil = tau == EXPECTED_TAU
        found.append(
            Claim(
                group=f"foil, one process per arm: REGRESSION at {TOLERANCE:.2f}",
                name=f"iid, tau {tau:.0%}",
                cell=cell,
                seen="regression",
                sense="at least" if foil else "shown",
                limit=_POINTS,
            )
        )
    return found


_Rows = Mapping[str, tuple[dict[str, Any], tuple[float, float, float, float]]]
"""By name: what stalls, and the published REGRESSION, PASS, INCONCLUSIVE and operations."""

_STALLS: Final[_Rows] = {
    "none": ({}, (0, 1, 0, 10)),
    "both 10 %, x1.5-4": (
        {"candidate": 0.1, "baseline": 0.1, "factor": (1.5, 4.0)},
        (0.002, 0.99, 0.009, 23),
    ),
    "both 20 %, x4": ({"candidate": 0.2, "baseline": 0.2}, (0.003, 0.98, 0.013, 30)),
    "both 10 %, in runs": (
        {"candidate": 0.1, "baseline": 0.1, "sticky": True},
        (0.001, 0.99, 0.006, 19),
    ),
    "candidate 5 %, x4": ({"candidate": 0.05}, (0.07, 0.72, 0.2, 46)),
    "candidate 10 %, x2": (
        {"candidate": 0.1, "factor": (2.0, 2.0)},
        (0.55, 0.36, 0.09, 63),
    ),
    "candidate 10 %, x4": ({"candidate": 0.1}, (0.55, 0.36, 0.09, 63)),
    "candidate 20 %, x4": ({"candidate": 0.2}, (0.88, 0.11, 0, 50)),
    "5 % against 15 %, x4": ({"candidate": 0.15, "baseline": 0.05}, (0.23, 0.6, 0.17, 52)),
}
_STALLS_IN_LIVES: Final[_Rows] = {
    "none": ({}, (0, 1, 0, 16)),
    "both 10 %, x4": ({"candidate": 0.1, "baseline": 0.1}, (0.002, 0.99, 0.011, 26)),
    "both 10 %, in 30 % of lives": (
        {"candidate": 0.1, "baseline": 0.1, "sticky": True},
        (0.002, 0.98, 0.016, 28),
    ),
    "candidate 10 %, x4": ({"candidate": 0.1}, (0.66, 0.2, 0.14, 80)),
    "candidate 10 %, in 30 % of lives": (
        {"candidate": 0.1, "sticky": True},
        (0.52, 0.27, 0.21, 77),
    ),
    "candidate 20 %, x4": ({"candidate": 0.2}, (0.97, 0.026, 0.001, 59)),
}


def _stalls(series: int) -> list[Claim]:
    """The table of stalls: equal arms keep their levels, unequal ones are as it was published."""
    found = []
    tables = ((ONE_WORKER, _STALLS), (with_tau(LIVES, EXPECTED_TAU), _STALLS_IN_LIVES))
    for design, table in tables:
        for name, (fields, expected) in table.items():
            cell = Cell(kind="stalls", series=series, design=design, **fields)
            regression, passes, suspected, operations = expected
            same = cell.candidate == cell.baseline
            for seen, word, target, limit in (
                ("regression", "REGRESSION", regression, _LEVEL),
                ("passes", "PASS", passes, None),
                ("suspected", "INCONCLUSIVE (stalls)", suspected, 0.02),
            ):
                equal = same and limit is not None
                found.append(
                    Claim(
                        group=f"stalls, {design.title}: {word}",
                        name=name,
                        cell=cell,
                        seen=seen,
                        sense="at most" if equal else "near",
                        limit=limit if equal and limit is not None else target,
                        slack=0.0 if equal else _POINTS,
                    )
                )
            found.append(
                Claim(
                    group=f"stalls, {design.title}: operations per arm",
                    name=name,
                    cell=cell,
                    seen=OPERATIONS,
                    sense="near",
                    limit=operations,
                    slack=3,
                )
            )
            if cell.candidate > cell.baseline:
                found.append(_bounded(cell, f"stalls, {design.title}", name))
    return found


def _bounded(cell: Cell, group: str, name: str) -> Claim:
    """A PASS carries a bound, which is seldom below the true share."""
    return Claim(
        group=f"{group}: PASS whose bound is below the truth",
        name=name,
        cell=cell,
        seen="unbounded",
        sense="at most",
        limit=0.05,
    )


_EQUAL_FAILURES: Final = {
    0.001: (0.001, 0.001),
    0.01: (0.023, 0.037),
    0.05: (0.058, 0.075),
    0.2: (0.032, 0.041),
}
_MORE_FAILURES: Final = (
    (0.01, "passes", "PASS", (0.96, 0.94)),
    (0.05, "passes", "PASS", (0.62, 0.48)),
    (0.05, "suspected", "INCONCLUSIVE", (0.38, 0.52)),
    (0.1, "regression", "REGRESSION", (0.12, 0.14)),
    (0.1, "suspected", "INCONCLUSIVE", (0.52, 0.67)),
    (0.2, "regression", "REGRESSION", (0.79, 0.85)),
    (0.2, "passes", "PASS", (0.11, 0.03)),
    (0.3, "regression", "REGRESSION", (0.97, 0.99)),
    (1.0, "regression", "REGRESSION", (1.0, 1.0)),
)


def _failures(series: int) -> list[Claim]:
    """The table of failures, for a comparison whose times pass at the first look."""
    found = []
    for column, design in enumerate((ONE_WORKER, LIVES)):
        group = f"failures, {design.name}"
        for rate, suspected in _EQUAL_FAILURES.items():
            cell = Cell(
                kind="failures", series=series, design=design, candidate=rate, baseline=rate
            )
            name = f"both {100 * rate:g} %"
            found += [
                Claim(
                    group=f"{group}: REGRESSION",
                    name=name,
                    cell=cell,
                    seen="regression",
                    sense="at most",
                    limit=0.005,
                ),
                Claim(
                    group=f"{group}: INCONCLUSIVE",
                    name=name,
                    cell=cell,
                    seen="suspected",
                    sense="near",
                    limit=suspected[column],
                    slack=_POINTS,
                ),
            ]
        for rate, seen, word, expected in _MORE_FAILURES:
            cell = Cell(kind="failures", series=series, design=design, candidate=rate)
            found.append(
                Claim(
                    group=f"{group}: {word}",
                    name=f"candidate {100 * rate:g} %",
                    cell=cell,
                    seen=seen,
                    sense="near",
                    limit=expected[column],
                    slack=_POINTS,
                )
            )
            if seen == "passes":
                found.append(_bounded(cell, group, f"candidate {100 * rate:g} %"))
    return found


def _points(series: int) -> list[Claim]:
    """Whole points some of whose attempts fail: times, stalls and failures together."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        for rate in (0.1, 0.2):
            cell = Cell(kind="point", series=series, design=design, candidate=rate)
            name, group = f"candidate fails in {rate:.0%}", f"whole point, {design.title}"
            found.append(Claim(group=f"{group}: PASS", name=name, cell=cell, seen="passes"))
            found.append(
                Claim(group=f"{group}: REGRESSION", name=name, cell=cell, seen="regression")
            )
            found.append(_bounded(cell, group, name))
    return found


def _detectable(series: int, sigmas: Sequence[float]) -> list[Claim]:
    """The slow-down that is said to be detectable is found as often as is said."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, 0.02), with_tau(LIVES, 0.05)):
        for sigma in sigmas:
            for look in range(len(RULE.looks)):
                for power in (0.8, 0.9):
                    cell = Cell(
                        kind="detectable",
                        series=series,
                        design=design,
                        sigma=sigma,
                        look=look,
                        power=power,
                    )
                    at = RULE.looks_of(design.per_life)[look]
                    found.append(
                        Claim(
                            group=f"{design.title}: found of what is detectable at {power:.0%}",
                            name=f"sd {sigma:.0%}, N = {at}: {1 + claimed(cell):.3f}",
                            cell=cell,
                            seen="regression",
                            # Lives find a little more than is said, and never much less.
                            sense="near" if design is ONE_WORKER else "at least",
                            limit=power,
                            slack=_POINTS,
                        )
                    )
    return found


def _shared(series: int) -> list[Claim]:
    """The same for one of three primary operations, whose factors are not fits of their own."""
    found = []
    rule = GateRule(alpha=RULE.alpha / MAX_PRIMARY)
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        for look in (1, 3):
            for power in (0.8, 0.9):
                cell = Cell(
                    kind="detectable",
                    series=series,
                    design=design,
                    sigma=0.2,
                    look=look,
                    power=power,
                    rule=rule,
                )
                at = rule.looks_of(design.per_life)[look]
                found.append(
                    Claim(
                        group=f"{design.title}, a third of alpha: found of what is at {power:.0%}",
                        name=f"sd 20%, N = {at}: {1 + claimed(cell):.3f}",
                        cell=cell,
                        seen="regression",
                        sense="at least",
                        limit=power,
                        slack=_POINTS,
                    )
                )
    return found


def _intervals(series: int) -> list[Claim]:
    """Intervals at the look that stopped: they cover the truth, and agree with the verdict."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, 0.02), with_tau(LIVES, 0.05)):
        for cv in (0.05, 0.2):
            sigma = math.sqrt(math.log1p(cv**2))
            for ratio in (1.0, SOMEWHAT_SLOWER):
                cell = Cell(kind="interval", series=series, design=design, sigma=sigma, ratio=ratio)
                name = f"CV {cv:.0%}, ratio {ratio:.2f}"
                found += [
                    Claim(
                        group=f"{design.title}: intervals that cover the truth, at the verdict",
                        name=name,
                        cell=cell,
                        seen="covered",
                        sense="at least",
                        limit=0.95,
                    ),
                    Claim(
                        group=f"{design.title}: intervals that contradict their verdict",
                        name=name,
                        cell=cell,
                        seen="contrary",
                        sense="never",
                    ),
                ]
    return found


def _faster(sources: Sources, series: int) -> list[Claim]:
    """Identical arms are hardly ever called faster."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        group = f"{design.title}: called faster at 1.00"
        for source in sources.measured:
            cell = _time(source, 1.0, series, design)
            found.append(
                Claim(group=group, cell=cell, seen="faster", sense="at most", limit=_LEVEL)
            )
        cell = _time("iid", FASTER, series, design)
        found.append(
            Claim(group=f"{design.title}: called faster at {FASTER:.2f}", cell=cell, seen="faster")
        )
    return found


def _floor(series: int) -> list[Claim]:
    """Levels where the smallest slow-down in seconds is above, between and below the two shares.

    The baseline takes 10 ms, so that 2 ms are more than the margin and 1 ms lies between.
    """
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        for floor in (0.002, 0.001):
            rule = GateRule(min_effect_s=floor)
            for ratio, seen, limit in (
                (TOLERANCE, "regression", _LEVEL),
                (MARGIN, "passes", 0.05),
            ):
                cell = Cell(
                    kind="floor", series=series, design=design, sigma=0.2, ratio=ratio, rule=rule
                )
                word = "REGRESSION" if seen == "regression" else "PASS"
                found.append(
                    Claim(
                        group=f"{design.title}: {word} at its bound, with min_effect_s",
                        name=f"{1000 * floor:g} ms of 10 ms, {ratio:.2f}",
                        cell=cell,
                        seen=seen,
                        sense="at most",
                        limit=limit,
                    )
                )
    return found
