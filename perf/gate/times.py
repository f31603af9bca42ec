"""Claims on typical times: levels, power, length, and the foil of one process per arm."""

from __future__ import annotations

import functools
import math
from typing import Any

from orbax_bench_core.config import GateRule
from perf.gate.cells import Cell
from perf.gate.claims import OPERATIONS, Claim, Sense
from perf.gate.designs import (
    IN_TURNS,
    LIVES,
    ONE_WORKER,
    PER_ARM_PROCESS,
    PROCESSES,
    Design,
    with_tau,
)
from perf.gate.replay import OPERATIONS as OPERATIONS_REPLAYED
from perf.gate.rules import (
    ALONE,
    EXPECTED_TAU,
    FASTER,
    INTERACTIONS,
    LEVEL,
    MARGIN,
    POINTS,
    RULE,
    SLOWER,
    SOMEWHAT_SLOWER,
    TAUS,
    TOLERANCE,
    TWENTY,
    time_cell,
)
from perf.gate.sources import Sources


def levels(sources: Sources, series: int) -> list[Claim]:
    """Levels in one worker."""
    found = [
        Claim(
            group="one worker: the test alone at 1.00, N = 20, tolerance 0",
            cell=Cell(kind="test alone", source=source, series=series, rule=ALONE),
            seen="regression",
            sense="at most",
            limit=LEVEL,
        )
        for source in sources.judged
    ]
    for ratio, seen, limit in (
        (1.0, "regression", LEVEL),
        (TOLERANCE, "regression", LEVEL),
        (MARGIN, "passes", 0.05),
    ):
        word = "REGRESSION" if seen == "regression" else "PASS"
        found += [
            Claim(
                group=f"one worker: {word} at {ratio:.2f}",
                cell=time_cell(source, ratio, series),
                seen=seen,
                sense="at most",
                limit=limit,
            )
            for source in sources.all
        ]
    return found


def power(sources: Sources, series: int) -> list[Claim]:
    """Power and length in one worker; a comparison without a verdict counts with all its 60."""
    found = []
    for source in sources.all:
        sense: Sense = "at least" if source in sources.judged else "shown"
        cell = time_cell(source, SLOWER, series)
        group = f"one worker: power at {SLOWER:.2f}"
        found.append(Claim(group=group, cell=cell, seen="regression", sense=sense, limit=0.95))
    twenty = Cell(kind="time", ratio=SOMEWHAT_SLOWER, series=series, rule=TWENTY)
    group = f"one worker: power at {SOMEWHAT_SLOWER:.2f}, N = 20, tolerance 0"
    found.append(Claim(group=group, cell=twenty, seen="regression", sense="at least", limit=0.8))
    limits = {"iid": 12.0}
    for ratio in (1.0, SLOWER):
        for source in sources.all:
            cell = time_cell(source, ratio, series)
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
        wild, *others = (time_cell(source, ratio, series) for source in sources.wild)
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


def lives(sources: Sources, series: int, *, quick: bool) -> list[Claim]:
    """Levels, power and length where the worker process is the unit of randomisation."""
    found = []
    half = max(1, series // 2)
    for base in (LIVES, IN_TURNS):
        for tau in TAUS:
            design = with_tau(base, tau)
            for source in sources.measured:
                level = time_cell(source, TOLERANCE, series, design)
                passes = time_cell(source, MARGIN, half, design)
                group = f"{design.title}: REGRESSION at {TOLERANCE:.2f}"
                found.append(
                    Claim(group=group, cell=level, seen="regression", sense="at most", limit=LEVEL)
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
        same = time_cell(source, 1.0, series, design)
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
        slower = time_cell(source, SLOWER, series, design)
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
        replayed = [source for source in sources.real if source.name.endswith(operation)]
        first, *others = (time_cell(source, 1.0, series, design) for source in replayed)
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


def processes(series: int) -> list[Claim]:
    """Where the arms share several processes, in each of which an option does something else."""
    found = []
    for tau in INTERACTIONS:
        design = with_tau(PROCESSES, tau)
        for cv in (0.05, 0.2):
            sigma, name = math.sqrt(math.log1p(cv**2)), f"CV {cv:.0%}"
            cell = functools.partial(Cell, series=series, design=design, sigma=sigma)
            found += [
                Claim(
                    group=f"{design.title}: REGRESSION at {ratio:.2f}",
                    name=name,
                    cell=cell(kind="time", ratio=ratio),
                    seen="regression",
                    # At 7 % it is 1.7 % at the tolerance itself, and 0 where nothing differs.
                    sense="at most" if ratio == 1 or tau < max(INTERACTIONS) else "shown",
                    limit=LEVEL,
                )
                for ratio in (1.0, TOLERANCE)
            ]
            found += [
                Claim(
                    group=f"{design.title}: PASS at {MARGIN:.2f}",
                    name=name,
                    cell=cell(kind="time", ratio=MARGIN),
                    seen="passes",
                    sense="at most",
                    limit=0.05,
                ),
                Claim(
                    group=f"{design.title}: power at {SLOWER:.2f}",
                    name=name,
                    cell=cell(kind="time", ratio=SLOWER),
                    seen="regression",
                    sense="at least" if cv < 0.2 else "shown",
                    limit=0.9 if tau < max(INTERACTIONS) else 0.7,
                ),
                Claim(
                    group=f"{design.title}: operations per arm at 1.00",
                    name=name,
                    cell=cell(kind="time"),
                    seen=OPERATIONS,
                    sense="at most" if cv < 0.2 else "shown",
                    limit=1.5 * RULE.looks[0],
                ),
                Claim(
                    group=f"{design.title}: intervals that cover the truth, at the verdict",
                    name=name,
                    cell=cell(kind="interval"),
                    seen="covered",
                    sense="at least",
                    limit=0.94,
                ),
            ]
    return found


def carry_over(series: int) -> list[Claim]:
    """Where an operation takes longer, or less, after the candidate: no word that it changes."""
    found = []
    for after, expected in ((0.7, 0.0), (1.0, 1.0), (1.5, 0.0)):
        cell = Cell(
            kind="point",
            series=series,
            design=with_tau(PROCESSES, EXPECTED_TAU),
            after=after,
            primaries=3,
        )
        for seen in ("regression", "passes"):
            if seen == "passes" and after < 1:  # which PASS does not deny
                continue
            passes = seen == "passes" and expected == 1
            found.append(
                Claim(
                    group=f"an operation takes {after:g}x as long after the candidate: {seen}",
                    cell=cell,
                    seen=seen,
                    sense="at least" if passes else "at most",
                    limit=0.95 if passes else LEVEL if seen == "regression" else 0.0,
                )
            )
    return found


def first_look(series: int) -> list[Claim]:
    """A large effect in all three primary operations is decided at the first look."""
    cells: dict[str, dict[str, Any]] = {
        "3x as slow": {"ratio": 3.0},
        "candidate always fails": {"candidate": 1.0},
    }
    return [
        Claim(
            group=f"{design.title}, three primary operations: decided at the first look",
            name=name,
            cell=Cell(kind="point", series=series, design=design, primaries=3, **fields),
            seen="at_once",
            sense="at least",
            limit=0.99,
        )
        for design in (with_tau(PROCESSES, EXPECTED_TAU), with_tau(LIVES, EXPECTED_TAU))
        for name, fields in cells.items()
    ]


def foil(series: int) -> list[Claim]:
    """What one process per arm does: with an offset to be expected it breaks its level."""
    found = []
    for tau in TAUS:
        cell = time_cell("iid", TOLERANCE, series, with_tau(PER_ARM_PROCESS, tau))
        foil = tau == EXPECTED_TAU
        found.append(
            Claim(
                group=f"foil, one process per arm: REGRESSION at {TOLERANCE:.2f}",
                name=f"iid, tau {tau:.0%}",
                cell=cell,
                seen="regression",
                sense="at least" if foil else "shown",
                limit=POINTS,
            )
        )
    return found


def faster(sources: Sources, series: int) -> list[Claim]:
    """Identical arms are hardly ever called faster."""
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        group = f"{design.title}: called faster at 1.00"
        for source in sources.measured:
            cell = time_cell(source, 1.0, series, design)
            found.append(Claim(group=group, cell=cell, seen="faster", sense="at most", limit=LEVEL))
        cell = time_cell("iid", FASTER, series, design)
        found.append(
            Claim(group=f"{design.title}: called faster at {FASTER:.2f}", cell=cell, seen="faster")
        )
    return found


def floor(series: int) -> list[Claim]:
    """Levels where the smallest slow-down in seconds is above, between and below the two shares.

    The baseline takes 10 ms, so that 2 ms are more than the margin and 1 ms lies between.
    """
    found = []
    for design in (ONE_WORKER, with_tau(LIVES, EXPECTED_TAU)):
        for floor in (0.002, 0.001):
            rule = GateRule(min_effect_s=floor)
            for ratio, seen, limit in (
                (TOLERANCE, "regression", LEVEL),
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
