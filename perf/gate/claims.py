"""Claims about the gate: what a cell must show, and within which Monte Carlo error."""

import dataclasses
from collections.abc import Mapping
from typing import Final, Literal

from perf.figure import ERRORS, Figure, standard_error
from perf.gate.cells import Cell, Tally

Sense = Literal["at most", "at least", "near", "never", "shown"]

OPERATIONS: Final = "operations"
"""Quantity that is looked at where it is no count."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """Claim about a cell."""

    group: str  # what kind of figure it is
    cell: Cell  # what is tried
    seen: str  # what is counted there, or `operations` for their mean
    sense: Sense = "shown"  # how it compares with the limit
    limit: float = 0.0  # the target: a share, or operations
    slack: float = 0.0
    """By how much it may be missed beside the Monte Carlo error; for `at least` and `at most`
    one way, for `near` both."""
    name: str = ""  # on what data; empty for the name of the source
    also: tuple[Cell, ...] = ()  # cells whose comparisons are counted together with it

    def figure(self, tallies: Mapping[str, Tally]) -> Figure:
        """Returns what was found, beside the target."""
        tally = sum((tallies[cell.key] for cell in (self.cell, *self.also)), start=Tally())
        share = self.seen != OPERATIONS
        value = tally.rate(self.seen) if share else tally.mean_operations
        return Figure(
            group=self.group,
            name=self.name or self.cell.name,
            value=value,
            error=tally.error(self.seen) if share else tally.operations_error,
            target=self._target(tally),
            met=self._met(value, self._allowed(tally) + 1e-9),
            share=share,
        )

    def _met(self, value: float, allowed: float) -> bool | None:
        off = value - self.limit
        return {
            "shown": None,
            "never": value == 0,
            "near": abs(off) <= allowed,
            "at most": off <= allowed,
            "at least": -off <= allowed,
        }[self.sense]

    def _allowed(self, tally: Tally) -> float:
        if self.seen == OPERATIONS:
            return self.slack + ERRORS * tally.operations_error
        return self.slack + ERRORS * standard_error(self.limit, tally.series)

    def _target(self, tally: Tally) -> str:
        if self.sense == "shown":
            return ""
        if self.sense == "never":
            return "never"
        sign = {"at most": "≤", "at least": "≥", "near": "≈"}[self.sense]
        if self.seen == OPERATIONS:
            return f"{sign} {self.limit:g} ± {self._allowed(tally):.1f}"
        return f"{sign} {100 * self.limit:.3g} % ± {100 * self._allowed(tally):.1f}"
