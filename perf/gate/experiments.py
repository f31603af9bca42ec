"""Cells of the gate's tables: many comparisons of one kind, counted."""

from __future__ import annotations

import dataclasses
import math
import zlib
from typing import Final, Literal

import numpy as np

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.blocks import PER_ARM, SLOTS, Blocks, random_labels
from orbax_bench_core.gate.estimate import estimate
from orbax_bench_core.gate.looks import settle
from perf.gate.noise import REGIMES, Floats, days
from perf.gate.replay import Series, windows
from perf.gate.rivals import RIVALS

RIVAL_OPERATIONS: Final = 20
"""Operations per arm that a rival takes."""

Kind = Literal["verdicts", "coverage", "stopped coverage", "rivals"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """Cell of a table: comparisons of one kind.

    Attributes:
        kind: `verdicts` counts what the gate says; `coverage` whether the interval at the second
            look holds the truth, and `stopped coverage` that at the look that ended it; `rivals`
            what the rules of other tools say.
        source: A made-up noise by name, or a series to replay.
        ratio: True ratio of candidate to baseline.
        rule: The gate's rule.
        series: How many comparisons.
    """

    kind: Kind
    source: str | Series
    ratio: float
    series: int
    rule: GateRule

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source if isinstance(self.source, str) else self.source.name

    def parts(self, size: int) -> list[Part]:
        """Returns the cell in parts of at most `size` comparisons, each with its own seed."""
        seed = zlib.crc32(f"{self.kind}|{self.name}|{self.ratio}|{self.rule}".encode())
        return [
            (dataclasses.replace(self, series=min(size, self.series - start)), seed + start)
            for start in range(0, self.series, size)
        ]

    @property
    def key(self) -> tuple[Kind, str, float, GateRule]:
        """What tells it from other cells."""
        return self.kind, self.name, self.ratio, self.rule


Part = tuple[Cell, int]
"""Some comparisons of a cell, and their seed."""


@dataclasses.dataclass(frozen=True)
class Tally:
    """Counts of a cell: how often each thing was seen, and the operations that it took."""

    series: int = 0
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    operations: tuple[int, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        names = dict.fromkeys([*self.counts, *other.counts])
        return Tally(
            series=self.series + other.series,
            counts={n: self.counts.get(n, 0) + other.counts.get(n, 0) for n in names},
            operations=self.operations + other.operations,
        )

    def rate(self, name: str) -> float:
        """Returns the share of comparisons in which something was seen."""
        return self.counts.get(name, 0) / self.series

    def error(self, name: str) -> float:
        """Returns the standard error of that share, never 0."""
        least = 1 / self.series
        rate = min(max(self.rate(name), least), 1 - least)
        return math.sqrt(rate * (1 - rate) / self.series)

    @property
    def mean_operations(self) -> float:
        """Operations per arm, on average."""
        return float(np.mean(self.operations))

    @property
    def operations_error(self) -> float:
        """Standard error of their mean."""
        return float(np.std(self.operations) / math.sqrt(len(self.operations)))


def run(part: Part) -> Tally:
    """Tries out one part of a cell."""
    cell, seed = part
    rng = np.random.default_rng(seed)
    return _rivals(cell, rng) if cell.kind == "rivals" else _gate(cell, rng)


def _gate(cell: Cell, rng: np.random.Generator) -> Tally:
    blocks = cell.rule.looks[-1] // PER_ARM
    noise = _times(cell, rng, blocks * SLOTS)
    counts: dict[str, int] = {}
    operations = []
    for row in noise:
        labels = random_labels(blocks, rng)
        logs = np.log(row.reshape(blocks, SLOTS)) + math.log(cell.ratio) * labels
        seen, taken = _one(cell, Blocks(logs=logs, candidate=labels))
        counts[seen] = counts.get(seen, 0) + 1
        operations.append(taken)
    return Tally(len(noise), counts, tuple(operations))


def _one(cell: Cell, blocks: Blocks) -> tuple[str, int]:
    """Returns what one comparison gave, and the operations per arm that it took."""
    used = blocks.first(cell.rule.looks[1] // PER_ARM) if len(cell.rule.looks) > 1 else blocks
    if cell.kind != "coverage":
        outcome = settle({"": blocks}, {"": cell.rule})[""]
        assert outcome.look is not None
        used = blocks.first(cell.rule.looks[outcome.look] // PER_ARM)
        if cell.kind == "verdicts":
            return outcome.word, used.operations
    found = estimate(used)
    assert found.low is not None
    assert found.high is not None
    if cell.ratio < found.low:
        return "below", used.operations
    return ("above" if cell.ratio > found.high else "covered"), used.operations


def _rivals(cell: Cell, rng: np.random.Generator) -> Tally:
    times = _times(cell, rng, 2 * RIVAL_OPERATIONS)
    baseline, candidate = times[:, :RIVAL_OPERATIONS], cell.ratio * times[:, RIVAL_OPERATIONS:]
    if cell.source == "session":
        baseline = baseline * days(rng, len(times))
        candidate = candidate * days(rng, len(times))
    found = {name: rule(baseline, candidate, rng) for name, rule in RIVALS.items()}
    return Tally(len(times), {name: int(said.sum()) for name, said in found.items()})


def _times(cell: Cell, rng: np.random.Generator, length: int) -> Floats:
    if isinstance(cell.source, str):
        return REGIMES[cell.source](rng, cell.series, length)
    return windows(cell.source, rng, cell.series, length)
