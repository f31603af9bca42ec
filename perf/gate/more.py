"""Claims on `--more`: the levels after each use of it, and what becomes of INCONCLUSIVE."""

import functools
import itertools
import math
from typing import Final

from perf.gate.cells import Cell
from perf.gate.claims import Claim
from perf.gate.designs import LIVES, PROCESSES, with_tau
from perf.gate.experiments import MOST_USES
from perf.gate.rules import EXPECTED_TAU, LEVEL, MARGIN, RULE, SLOWER, SOMEWHAT_SLOWER, TOLERANCE
from perf.gate.sources import Sources

_RATIOS: Final = (1.0, TOLERANCE, SOMEWHAT_SLOWER, MARGIN, SLOWER)
_BOUNDARIES: Final = {1.0: "regression", TOLERANCE: "regression", MARGIN: "passes"}
"""The word that is wrong at a true ratio."""


def more(sources: Sources, series: int) -> list[Claim]:
    """Returns what a comparison says by itself, and after `--more` was used up to three times."""
    lives, shared = with_tau(LIVES, EXPECTED_TAU), with_tau(PROCESSES, EXPECTED_TAU)
    made_up = [(lives, 0.2, _RATIOS), (lives, 0.5, _RATIOS), (shared, 0.2, (TOLERANCE, MARGIN))]
    (load,) = (each for each in sources.real if each.name == "busy load")
    tried = [
        (f"CV {cv:.0%}, {ratio:.2f}", Cell(sigma=math.sqrt(math.log1p(cv**2)), **of))
        for design, cv, ratios in made_up
        for ratio in ratios
        for of in [{"kind": "more", "series": series, "design": design, "ratio": ratio}]
    ]
    replayed = functools.partial(Cell, kind="more", source=load, series=series, design=lives)
    tried += [(f"replayed loads, {ratio:.2f}", replayed(ratio=ratio)) for ratio in _BOUNDARIES]
    return [
        claim
        for (name, cell), uses in itertools.product(tried, range(MOST_USES + 1))
        for claim in _after(name, cell, uses)
    ]


def _after(name: str, cell: Cell, uses: int) -> list[Claim]:
    """Returns the claims on all words after so many uses."""
    wrong, found = _BOUNDARIES.get(cell.ratio), []
    for word in ("regression", "passes", "suspected"):
        group, seen = f"{cell.design.title}, --more used {uses} times: {word}", f"{word} {uses}"
        if word == wrong:
            limit = LEVEL if word == "regression" else RULE.pass_alpha
            found.append(Claim(group, cell, seen, "at most", limit, name=name))
        else:
            found.append(Claim(group, cell, seen, name=name))
    return found
