"""What a collector is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Reading(NamedTuple):
    """One value that a collector read.

    Attributes:
        metric: Name of the metric, which `registry.lookup` resolves.
        value: The value, in `unit`.
        unit: Unit of the value.
    """

    metric: str
    value: float
    unit: str


class Collector(Protocol):
    """Watches one block.

    A new object serves each block. All of a block's collectors are constructed before the first of
    them starts, so a constructor is the place for imports and other costs that come once. `start`
    and `stop` run outside the clock; they may raise, which loses this collector's readings only.
    A collector that has more to say than numbers puts lines of text into an attribute `notes`.
    """

    def start(self) -> None:
        """Remembers the state before the operation."""

    def stop(self) -> Sequence[Reading]:
        """The readings of the operation that just ended."""
        ...
