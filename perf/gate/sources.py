"""Sources of times that the gate is tried on."""

import dataclasses
from collections.abc import Sequence

from perf.gate.noise import REGIMES
from perf.gate.replay import Series, stretched

Source = str | Series


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sources:
    """Sources of times that the gate is tried on."""

    regimes: tuple[str, ...]  # made-up noise, by name
    real: tuple[Series, ...]  # real series, replayed
    wild: tuple[Series, ...]  # real series whose slow states were stretched to a CV of 50 %
    wilder: tuple[Series, ...]  # real series all of whose noise was

    @classmethod
    def of(cls, real: Sequence[Series]) -> "Sources":
        """Returns the six regimes, and the real series with those stretched from the first file."""
        machine = real[0].name.split()[0]
        first = [series for series in real if series.name.split()[0] == machine]
        return cls(
            regimes=tuple(REGIMES),
            real=tuple(real),
            wild=tuple(stretched(series, whole=False) for series in first),
            wilder=tuple(stretched(series, whole=True) for series in first),
        )

    @property
    def measured(self) -> tuple[Source, ...]:
        """Made-up noise, and series as they were measured."""
        return (*self.regimes, *self.real)

    @property
    def judged(self) -> tuple[Source, ...]:
        """Those on which every target must be met."""
        return (*self.measured, *self.wild)

    @property
    def all(self) -> tuple[Source, ...]:
        """Those on which the levels must hold."""
        return (*self.judged, *self.wilder)
