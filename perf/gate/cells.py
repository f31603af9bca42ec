"""Cells of the gate's tables, and what was counted in them."""

import dataclasses
import hashlib
import math
from typing import Final, Literal

from orbax_bench_core.config import GateRule
from perf.figure import standard_error
from perf.gate.designs import ONE_WORKER, Design
from perf.gate.replay import Series

Kind = Literal[
    "time",
    "stalls",
    "failures",
    "point",
    "stalling point",
    "more",
    "detectable",
    "interval",
    "floor",
    "rivals",
    "test alone",
]

_RULE: Final = GateRule()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """Comparisons of one kind."""

    kind: Kind  # what is counted; see `perf.gate.experiments`
    source: str | Series = "iid"  # a made-up noise by name, or a series to replay
    series: int  # how many comparisons
    design: Design = ONE_WORKER  # which operations share a process
    ratio: float = 1.0  # true ratio of candidate to baseline
    rule: GateRule = _RULE
    candidate: float = 0.0
    """Share of the candidate's operations that stall, or of its attempts that fail."""
    baseline: float = 0.0  # the same for the baseline
    factor: tuple[float, float] = (4.0, 4.0)  # times as long a stalled operation takes: a range
    sticky: bool = False  # whether stalls come together
    sigma: float | None = None
    """Standard deviation of the log times, where that is not the source's own."""
    look: int = 0  # index of the look at which something is counted
    power: float = 0.9  # claimed share of slow-downs that are found
    after: float = 1.0
    """Times as long an operation takes after one of the candidate in the same process."""
    late: float = 1.0
    """Times as long an operation of the candidate takes from its eleventh on."""
    growth: float = 0.0  # share by which each operation of the candidate takes longer than its last
    seconds: float = 1.0  # typical seconds of an operation of a point
    primaries: int = 1  # primary operations of a point, with the same times

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source if isinstance(self.source, str) else self.source.name

    @property
    def key(self) -> str:
        """What tells it from other cells, whatever the number of comparisons."""
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("series", "source")
        }
        return repr({"source": self.name, **fields})

    def parts(self, size: int) -> "list[Part]":
        """Returns the cell in parts of at most `size` comparisons, each with its own seed."""
        seed = int.from_bytes(hashlib.sha256(self.key.encode()).digest()[:6], "big")
        return [
            (dataclasses.replace(self, series=min(size, self.series - start)), seed + start)
            for start in range(0, self.series, size)
        ]


Part = tuple[Cell, int]
"""Some comparisons of a cell, and their seed."""


@dataclasses.dataclass(frozen=True)
class Tally:
    """Counts of a cell: how often each thing was seen, and the operations that it took."""

    series: int = 0  # number of comparisons
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    """How often each thing was seen."""
    operations: int = 0  # operations per arm of all of them together
    squares: int = 0  # sum of the squares of the operations

    def __add__(self, other: "Tally") -> "Tally":
        names = dict.fromkeys([*self.counts, *other.counts])
        return Tally(
            series=self.series + other.series,
            counts={n: self.counts.get(n, 0) + other.counts.get(n, 0) for n in names},
            operations=self.operations + other.operations,
            squares=self.squares + other.squares,
        )

    def rate(self, name: str) -> float:
        """Returns the share of comparisons in which something was seen."""
        return self.counts.get(name, 0) / self.series

    def error(self, name: str) -> float:
        """Returns the standard error of that share, never 0."""
        return standard_error(self.rate(name), self.series)

    @property
    def mean_operations(self) -> float:
        """Operations per arm, on average."""
        return self.operations / self.series

    @property
    def operations_error(self) -> float:
        """Standard error of their mean."""
        variance = self.squares / self.series - self.mean_operations**2
        return math.sqrt(max(variance, 0.0) / self.series)
