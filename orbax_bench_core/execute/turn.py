"""RepeatKey: one repeat of a point, or of one side of a pair."""

from __future__ import annotations

from typing import Any, NamedTuple

from orbax_bench_core.config import Arm
from orbax_bench_core.execute.session import Progress, Retry
from orbax_bench_core.sweep import SweepEntry, SweepPoint, side


class RepeatKey(NamedTuple):
    """A repeat that is to be made, and which side of its point it measures.

    Attributes:
        point: The point or pair.
        repeat: Which repeat of it, from 0.
        arm: Which side of a pair.
        block: The block of a paired comparison.
        life: The slot of the block that has a worker of its own.
    """

    point: SweepEntry
    repeat: int
    arm: Arm | None = None
    block: int | None = None
    life: int | None = None

    @property
    def measured(self) -> SweepPoint:
        """The point, or that of the side."""
        return side(self.point, self.arm)

    def progress(self, **fields: Any) -> Progress:
        """Returns what is told of it as it goes on; `fields` are those of `Progress`."""
        return Progress(**{**self._which(), **fields})

    def retry(self, reason: str, left: int) -> Retry:
        """Returns what is told before it is tried again."""
        return Retry(**self._which(), reason=reason, left=left)

    def _which(self) -> dict[str, Any]:
        which = {"point": self.point, "index": self.repeat, "arm": self.arm}
        return {**which, "block": self.block, "life": self.life}
