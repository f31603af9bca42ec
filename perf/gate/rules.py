"""Rules, ratios and offsets of processes at which the gate is tried out."""

from typing import Final

from orbax_bench_core.config import GateRule
from perf.gate.cells import Cell
from perf.gate.designs import ONE_WORKER, Design
from perf.gate.sources import Source

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
INTERACTIONS: Final = (0.0, 0.02, 0.04, 0.07)
"""What an option does differs from process to process by that: 3.8 and 6.9 % were measured."""
NOT_ASSUMED: Final = ((0.12, 0.0), (0.04, 0.8), (0.07, 0.8), (0.04, 1.0), (0.07, 1.0))
"""Larger, or correlated from one process of a run to the next; at 1 the same in all of a run."""
SIGMAS: Final = (0.02, 0.05, 0.1, 0.2, 0.5)
QUICK_SIGMAS: Final = (0.05, 0.2, 0.5)
POINTS: Final = 0.03
"""Largest distance of a share from the one that was published."""
LEVEL: Final = 0.01
"""Largest share of false alarms."""


def time_cell(source: Source, ratio: float, series: int, design: Design = ONE_WORKER) -> Cell:
    """Returns the comparison of times of a source whose arms differ by a ratio."""
    return Cell(kind="time", source=source, ratio=ratio, series=series, design=design)
