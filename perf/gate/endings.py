"""Claims on what a PASS speaks of: all that was measured, rare events, and what a job pays."""

import functools
import math
from typing import Any, Final

from perf.gate.cells import Cell, Kind
from perf.gate.claims import OPERATIONS, Claim, Sense
from perf.gate.designs import PROCESSES, with_tau
from perf.gate.rules import EXPECTED_TAU, LEVEL, MARGIN, SLOWER, SOMEWHAT_SLOWER, TOLERANCE

_GROUP: Final = "whole comparison by the default rules"

_Wanted = tuple[str, Sense, float]
"""What is counted, how it compares with the limit, and the limit."""

_NEVER_PASSES: Final[_Wanted] = ("passes", "at most", 0.005)
_HARDLY_PASSES: Final[_Wanted] = ("passes", "at most", 0.05)
_NO_ALARM: Final[_Wanted] = ("regression", "at most", LEVEL)
_FOUND: Final[_Wanted] = ("regression", "at least", 0.95)
_COVERED: Final[_Wanted] = ("covered", "at least", 0.95)

_QUIET: Final[tuple[tuple[str, dict[str, Any], tuple[_Wanted, ...]], ...]] = (
    ("nothing differs", {}, (_NO_ALARM, ("passes", "at least", 0.9))),
    ("1.03", {"ratio": TOLERANCE}, (_NO_ALARM,)),
    ("1.10", {"ratio": SOMEWHAT_SLOWER}, (("regression", "at least", 0.4),)),
    ("1.15", {"ratio": MARGIN}, (_HARDLY_PASSES,)),
    ("1.20", {"ratio": SLOWER}, (_FOUND,)),
    ("1.5 from the eleventh on", {"late": 1.5}, (_FOUND, _NEVER_PASSES)),
    ("1 % more with each", {"growth": 0.01}, (_FOUND, _NEVER_PASSES)),
)
"""At a CV of 5 and 10 %: what the candidate does, and what has to be found."""

_FACTOR: Final[dict[Kind, dict[str, Any]]] = {"stalling point": {"factor": (20.0, 20.0)}}

_RARE: Final[tuple[tuple[str, Kind, float, float, tuple[_Wanted, ...]], ...]] = (
    ("5 s an operation, 5 % fail", "point", 5.0, 0.05, (("passes", "at most", 0.2),)),
    ("5 s an operation, 10 % fail", "point", 5.0, 0.1, (_HARDLY_PASSES,)),
    ("60 s an operation, 5 % fail", "point", 60.0, 0.05, ()),
    (
        "5 s an operation, 3 % stall x20",
        "stalling point",
        5.0,
        0.03,
        (("passes", "at most", 0.35),),
    ),
    ("5 s an operation, 10 % stall x20", "stalling point", 5.0, 0.1, (_HARDLY_PASSES,)),
    ("60 s an operation, 3 % stall x20", "stalling point", 60.0, 0.03, ()),
)
"""What the candidate does, the kind of cell, seconds of an operation, the share that is bad, and
what has to be found.

By default a PASS excludes that a tenth of operations are bad beyond the baseline's, if its minutes
reach. A share below that passes as often as none is seen, which no rule can prevent; for operations
of 60 s the minutes do not reach, and the PASS says so. It is held to what it says: `unbounded`.
"""

_OTHERS: Final[tuple[tuple[str, Kind, float, dict[str, Any], tuple[_Wanted, ...]], ...]] = (
    *(
        (
            name,
            kind,
            0.1,
            {"seconds": seconds, "candidate": share} | _FACTOR.get(kind, {}),
            (("unbounded", "at most", 0.05), *wanted),
        )
        for name, kind, seconds, share, wanted in _RARE
    ),
    (
        "1.08, and 1.07 for the next",
        "point",
        0.1,
        {"ratio": 1.08, "after": MARGIN / 1.08},
        (_HARDLY_PASSES, _COVERED),
    ),
    ("1.15 for the next", "point", 0.2, {"after": MARGIN}, (_HARDLY_PASSES, _COVERED)),
    ("nothing differs", "point", 0.2, {}, (_NO_ALARM,)),
)
"""The same with the kind of cell and the CV."""


def endings(series: int) -> list[Claim]:
    """Whole comparisons, live: what they end in, and after how many operations."""
    quiet = [(name, "point", cv, *rest) for cv in (0.05, 0.1) for name, *rest in _QUIET]
    found = []
    for name, kind, cv, fields, wanted in (*quiet, *_OTHERS):
        cell = Cell(
            kind=kind,
            series=series,
            design=with_tau(PROCESSES, EXPECTED_TAU),
            sigma=math.sqrt(math.log1p(cv**2)),
            **fields,
        )
        claim = functools.partial(Claim, cell=cell, name=f"{name}, CV {cv:.0%}")
        found += [
            claim(f"{_GROUP}: {seen}", seen=seen, sense=sense, limit=limit)
            for seen, sense, limit in wanted
        ]
        others = {"regression", "passes", "lives"} - {seen for seen, *_ in wanted}
        found += [claim(f"{_GROUP}: {seen}", seen=seen) for seen in sorted(others)]
        found.append(claim(f"{_GROUP}: operations per arm", seen=OPERATIONS))
    return found
