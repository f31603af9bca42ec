"""Interface of the harness's probes: their setting and their figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perf.pairing import Figure
from perf.upstream import Upstream


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Setting of a measurement.

    Attributes:
        rounds: Pairs per figure, the discarded warm-up not counted.
        upstream: The other side; None when there is none.
        say: Shows a line of progress.
    """

    rounds: int
    upstream: Upstream | None
    say: Callable[[str], None]


Probe = Callable[[Setting], list[Figure]]
