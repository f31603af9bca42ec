"""Claims about the gate: what a cell must show, and within which Monte Carlo error."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final, Literal

from perf.figure import Figure
from perf.gate.cells import Cell, Tally

Sense = Literal["at most", "at least", "near", "never", "shown"]

ERRORS: Final = 2.58
"""Monte Carlo errors by which a share may miss its target: 99 times in 100 chance keeps to them."""

OPERATIONS: Final = "operations"
"""Quantity that is looked at where it is no count."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """Claim about a cell.

    Attributes:
        group: What kind of figure it is.
        name: On what data; empty for the name of the source.
        cell: What is tried.
        also: Cells whose comparisons are counted together with it.
        seen: What is counted there, or `operations` for their mean.
        sense: How it compares with the limit.
        limit: The target: a share, or operations.
        slack: By how much it may be missed beside the Monte Carlo error; for `at least` and
            `at most` one way, for `near` both.
    """

    group: str
    cell: Cell
    seen: str
    sense: Sense = "shown"
    limit: float = 0.0
    slack: float = 0.0
    name: str = ""
    also: tuple[Cell, ...] = ()

    def figure(self, tallies: Mapping[str, Tally]) -> Figure:
        """Returns what was found, beside the target."""
        tally = sum((tallies[cell.key] for cell in (self.cell, *self.also)), start=Tally())
        share = self.seen != OPERATIONS
        return Figure(
            group=self.group,
            name=self.name or self.cell.name,
            value=tally.rate(self.seen) if share else tally.mean_operations,
            error=tally.error(self.seen) if share else tally.operations_error,
            target=self._target(tally),
            met=self._met(tally),
            share=share,
        )

    def _met(self, tally: Tally) -> bool | None:
        share = self.seen != OPERATIONS
        value = tally.rate(self.seen) if share else tally.mean_operations
        off = value - self.limit
        allowed = self._allowed(tally) + 1e-9
        if self.sense == "shown":
            return None
        if self.sense == "never":
            return value == 0
        if self.sense == "near":
            return abs(off) <= allowed
        return (off if self.sense == "at most" else -off) <= allowed

    def _allowed(self, tally: Tally) -> float:
        if self.seen == OPERATIONS:
            return self.slack + ERRORS * tally.operations_error
        rate = min(max(self.limit, 1 / tally.series), 1 - 1 / tally.series)
        return self.slack + ERRORS * math.sqrt(rate * (1 - rate) / tally.series)

    def _target(self, tally: Tally) -> str:
        if self.sense == "shown":
            return ""
        if self.sense == "never":
            return "never"
        sign = {"at most": "≤", "at least": "≥", "near": "≈"}[self.sense]
        if self.seen == OPERATIONS:
            return f"{sign} {self.limit:g} ± {self._allowed(tally):.1f}"
        return f"{sign} {100 * self.limit:.3g} % ± {100 * self._allowed(tally):.1f}"
