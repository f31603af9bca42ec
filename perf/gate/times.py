"""Claims on typical times: levels, power, length, and the foil of one process per arm."""

import dataclasses
import functools
import math
from collections.abc import Sequence

from orbax_bench_core.config import GateRule
from perf.gate import designs
from perf.gate.cells import Cell
from perf.gate.claims import OPERATIONS, Claim, Sense
from perf.gate.replay import OPERATIONS as OPERATIONS_REPLAYED
from perf.gate.rules import (
    ALONE,
    EXPECTED_TAU,
    FASTER,
    INTERACTIONS,
    LEVEL,
    MARGIN,
    NOT_ASSUMED,
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


def _at(what: str, cell: Cell, seen: str, sense: Sense = "shown", *limit: float) -> Claim:
    """Returns a claim on a comparison whose arms differ by the ratio of a cell."""
    return Claim(f"{cell.design.title}: {what} at {cell.ratio:.2f}", cell, seen, sense, *limit)


def _regresses(cell: Cell, sense: Sense = "at most") -> Claim:
    return _at("REGRESSION", cell, "regression", sense, LEVEL)


def _passes(cell: Cell) -> Claim:
    return _at("PASS", cell, "passes", "at most", 0.05)


def _power(cell: Cell, sense: Sense, limit: float = 0.95) -> Claim:
    return _at("power", cell, "regression", sense, limit)


def _length(cell: Cell, sense: Sense, limit: float) -> Claim:
    return _at("operations per arm", cell, OPERATIONS, sense, limit)


def _together(name: str, claims: Sequence[Claim]) -> Claim:
    """Returns one claim on the comparisons of several."""
    first, *others = claims
    return dataclasses.replace(first, name=name, also=tuple(claim.cell for claim in others))


def levels(sources: Sources, series: int) -> list[Claim]:
    """Levels in one worker."""
    group = "one worker: the test alone at 1.00, N = 20, tolerance 0"
    alone = (
        Cell(kind="test alone", source=source, series=series, rule=ALONE)
        for source in sources.judged
    )
    return [
        *(Claim(group, cell, "regression", "at most", LEVEL) for cell in alone),
        *(_regresses(time_cell(source, 1.0, series)) for source in sources.all),
        *(_regresses(time_cell(source, TOLERANCE, series)) for source in sources.all),
        *(_passes(time_cell(source, MARGIN, series)) for source in sources.all),
    ]


def power(sources: Sources, series: int) -> list[Claim]:
    """Power and length in one worker; a comparison without a verdict counts with all its 60."""
    found = [
        _power(
            time_cell(source, SLOWER, series), "at least" if source in sources.judged else "shown"
        )
        for source in sources.all
    ]
    twenty = Cell(kind="time", ratio=SOMEWHAT_SLOWER, series=series, rule=TWENTY)
    group = f"one worker: power at {SOMEWHAT_SLOWER:.2f}, N = 20, tolerance 0"
    found.append(Claim(group, twenty, "regression", "at least", 0.8))
    # A PASS is also of what the next operation pays, which the order of the arms tells less well.
    for ratio, quiet, noisy in ((1.0, 14.0, 42.0), (SLOWER, 12.0, 35.0)):
        found += [
            _length(
                time_cell(source, ratio, series), "at most" if source == "iid" else "shown", quiet
            )
            for source in sources.all
        ]
        wild = [_length(time_cell(each, ratio, series), "at most", noisy) for each in sources.wild]
        found.append(_together("slow states to CV 50 %, all operations", wild))
    return found


def lives(sources: Sources, series: int, *, quick: bool) -> list[Claim]:
    """Levels, power and length where the worker process is the unit of randomisation."""
    found = []
    half = max(1, series // 2)
    for base in (designs.LIVES, designs.IN_TURNS):
        for tau in TAUS:
            design = designs.with_tau(base, tau)
            for source in sources.measured:
                found.append(_regresses(time_cell(source, TOLERANCE, series, design)))
                found.append(_passes(time_cell(source, MARGIN, half, design)))
            if tau == EXPECTED_TAU or not quick:
                found += _lives_length(sources, half, design)
    return found


def _lives_length(sources: Sources, series: int, design: designs.Design) -> list[Claim]:
    found = []
    expected = design == designs.with_tau(designs.LIVES, EXPECTED_TAU)
    for source in sources.measured:
        made_up = source in sources.regimes
        same, slower = (time_cell(source, ratio, series, design) for ratio in (1.0, SLOWER))
        found.append(_length(same, "at most" if made_up and expected else "shown", 22))
        sense: Sense = "at least" if made_up or not design.in_turns else "shown"
        limit = 0.95 if made_up or design.tau <= EXPECTED_TAU else 0.9
        found.append(_power(slower, sense, limit))
    for operation in OPERATIONS_REPLAYED:
        replayed = [
            _length(time_cell(source, 1.0, series, design), "at most" if expected else "shown", 30)
            for source in sources.real
            if source.name.endswith(operation)
        ]
        found.append(_together(f"replayed {operation}s", replayed))
    return found


def processes(series: int) -> list[Claim]:
    """Where the arms share several processes, in each of which an option does something else."""
    found = []
    for tau in INTERACTIONS:
        design, bearable = designs.with_tau(designs.PROCESSES, tau), tau < max(INTERACTIONS)
        for cv in (0.05, 0.2):
            sigma, judged = math.sqrt(math.log1p(cv**2)), cv < 0.2
            cell = functools.partial(Cell, kind="time", series=series, design=design, sigma=sigma)
            cover = f"{design.title}: intervals that cover the truth, at the verdict"
            said = [
                _regresses(cell()),
                # At 7 % it is 1.7 % at the tolerance itself, and 0 where nothing differs.
                _regresses(cell(ratio=TOLERANCE), "at most" if bearable else "shown"),
                _passes(cell(ratio=MARGIN)),
                _power(
                    cell(ratio=SLOWER),
                    "at least" if judged else "shown",
                    0.9 if bearable else 0.7,
                ),
                _length(cell(), "at most" if judged else "shown", 2.5 * RULE.looks[0]),
                Claim(cover, cell(kind="interval"), "covered", "at least", 0.94),
            ]
            found += [dataclasses.replace(claim, name=f"CV {cv:.0%}") for claim in said]
    return found


def assumptions(series: int) -> list[Claim]:
    """What becomes of the levels where an option does not do as the test of processes assumes."""
    found = []
    for tau, correlation in NOT_ASSUMED:
        plain = designs.with_tau(designs.PROCESSES, tau)
        design = designs.Dependent(**vars(plain), correlation=correlation)
        cell = functools.partial(
            Cell, kind="point", series=series, design=design, sigma=math.sqrt(math.log1p(0.05**2))
        )
        claims = [
            _at("REGRESSION", cell(ratio=TOLERANCE), "regression"),
            _at("PASS", cell(ratio=MARGIN), "passes"),
        ]
        found += [dataclasses.replace(claim, name="CV 5%") for claim in claims]
    return found


def carry_over(series: int) -> list[Claim]:
    """Where an operation takes longer, or less, after the candidate: no word that it changes."""
    design, found = designs.with_tau(designs.PROCESSES, EXPECTED_TAU), []
    for after, seen, sense, limit in (
        (0.7, "regression", "at most", LEVEL),  # PASS does not deny that it takes less
        (1.0, "regression", "at most", LEVEL),
        (1.0, "passes", "at least", 0.95),
        (1.5, "regression", "at most", LEVEL),
        (1.5, "passes", "at most", 0.0),
    ):
        cell = Cell(kind="point", series=series, design=design, after=after, primaries=3)
        group = f"an operation takes {after:g}x as long after the candidate: {seen}"
        found.append(Claim(group, cell, seen, sense, limit))
    return found


def first_look(series: int) -> list[Claim]:
    """A large effect in all three primary operations is decided at the first look."""
    found = []
    for design in (
        designs.with_tau(designs.PROCESSES, EXPECTED_TAU),
        designs.with_tau(designs.LIVES, EXPECTED_TAU),
    ):
        cell = functools.partial(Cell, kind="point", series=series, design=design, primaries=3)
        group = f"{design.title}, three primary operations: decided at the first look"
        for name, tried in (
            ("3x as slow", cell(ratio=3.0)),
            ("candidate always fails", cell(candidate=1.0)),
        ):
            found.append(Claim(group, tried, "at_once", "at least", 0.99, name=name))
    return found


def foil(series: int) -> list[Claim]:
    """What one process per arm does: with an offset to be expected it breaks its level."""
    found = []
    group = f"foil, one process per arm: REGRESSION at {TOLERANCE:.2f}"
    for tau in TAUS:
        cell = time_cell("iid", TOLERANCE, series, designs.with_tau(designs.PER_ARM_PROCESS, tau))
        sense: Sense = "at least" if tau == EXPECTED_TAU else "shown"
        found.append(Claim(group, cell, "regression", sense, POINTS, name=f"iid, tau {tau:.0%}"))
    return found


def faster(sources: Sources, series: int) -> list[Claim]:
    """Identical arms are hardly ever called faster."""
    found = []
    for design in (
        designs.ONE_WORKER,
        designs.with_tau(designs.LIVES, EXPECTED_TAU),
        designs.with_tau(designs.PROCESSES, max(INTERACTIONS)),
    ):
        same = [time_cell(source, 1.0, series, design) for source in sources.measured]
        found += [_at("called faster", cell, "faster", "at most", LEVEL) for cell in same]
        found.append(_at("called faster", time_cell("iid", FASTER, series, design), "faster"))
    return found


def floor(series: int) -> list[Claim]:
    """Levels where the smallest slow-down in seconds is above, between and below the two shares.

    The baseline takes 10 ms, so that 2 ms are more than the margin and 1 ms lies between.
    """
    found = []
    for design in (designs.ONE_WORKER, designs.with_tau(designs.LIVES, EXPECTED_TAU)):
        for floor in (0.002, 0.001):
            rule = GateRule(min_effect_s=floor)
            cell = functools.partial(Cell, kind="floor", series=series, design=design, rule=rule)
            for word, ratio, seen, limit in (
                ("REGRESSION", TOLERANCE, "regression", LEVEL),
                ("PASS", MARGIN, "passes", 0.05),
            ):
                group = f"{design.title}: {word} at its bound, with min_effect_s"
                name = f"{1000 * floor:g} ms of 10 ms, {ratio:.2f}"
                bound = cell(sigma=0.2, ratio=ratio)
                found.append(Claim(group, bound, seen, "at most", limit, name=name))
    return found
