"""Claims on stalls and failures, alone and in whole points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from perf.gate.cells import Cell
from perf.gate.claims import OPERATIONS, Claim
from perf.gate.designs import LIVES, ONE_WORKER, with_tau
from perf.gate.rules import EXPECTED_TAU, LEVEL, POINTS

_Rows = Mapping[str, tuple[dict[str, Any], tuple[float, float, float, float]]]
"""By name: what stalls, and the published REGRESSION, PASS, INCONCLUSIVE and operations.

The last row was 23, 60, 17 % and 52 before the bound on the mean: its true mean ratio is 1.26.
"""

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
    "5 % against 15 %, x4": ({"candidate": 0.15, "baseline": 0.05}, (0.22, 0.54, 0.24, 54)),
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


def stalls(series: int) -> list[Claim]:
    """The table of stalls: equal arms keep their levels, unequal ones are as it was published."""
    found = []
    tables = ((ONE_WORKER, _STALLS), (with_tau(LIVES, EXPECTED_TAU), _STALLS_IN_LIVES))
    for design, table in tables:
        for name, (fields, expected) in table.items():
            cell = Cell(kind="stalls", series=series, design=design, **fields)
            regression, passes, suspected, operations = expected
            same = cell.candidate == cell.baseline
            for seen, word, target, limit in (
                ("regression", "REGRESSION", regression, LEVEL),
                ("passes", "PASS", passes, None),
                ("suspected", "INCONCLUSIVE (stalls)", suspected, 0.05),
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
                        slack=0.0 if equal else POINTS,
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


def failures(series: int) -> list[Claim]:
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
                    slack=POINTS,
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
                    slack=POINTS,
                )
            )
            if seen == "passes":
                found.append(_bounded(cell, group, f"candidate {100 * rate:g} %"))
    return found


def points(series: int) -> list[Claim]:
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
