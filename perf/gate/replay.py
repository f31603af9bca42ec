"""Replay of real times of identical operations, as if they were two arms."""

import csv
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from scipy.ndimage import median_filter

from perf.gate.noise import Floats

DATA: Final = Path(__file__).parent / "data"
FILES: Final[Mapping[str, str]] = {
    "busy": "real_saves_and_loads.csv",
    "quiet": "real_saves_and_loads_quiet.csv",
}
OPERATIONS: Final = ("save", "load")
WILD_CV: Final = 0.5

_STATE: Final = 9
_PRECISION: Final = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """One series in the order of measurement."""

    name: str  # what it is called in the tables
    times: Floats  # seconds
    real: bool = True  # whether it is as it was measured; otherwise it was stretched

    @property
    def variation(self) -> float:
        """Coefficient of variation."""
        return float(self.times.std() / self.times.mean())

    @property
    def correlation(self) -> float:
        """Correlation of each value with the one before it."""
        return float(np.corrcoef(self.times[:-1], self.times[1:])[0, 1])


def read_series(folder: Path = DATA) -> tuple[Series, ...]:
    """Returns every series there is, as it was measured."""
    found = []
    for machine, name in FILES.items():
        if (folder / name).exists():
            with (folder / name).open(newline="") as lines:
                rows = list(csv.DictReader(lines))
            for operation in OPERATIONS:
                times = np.array([float(row[f"{operation}_s"]) for row in rows])
                found.append(Series(name=f"{machine} {operation}", times=times))
    return tuple(found)


def stretched(series: Series, *, whole: bool) -> Series:
    """Returns a series pulled apart, on the log scale, until its coefficient of variation is 50 %.

    It stands in for a noisier machine than those that were measured. The order of the values stays.

    Args:
        series: What was measured.
        whole: Whether all noise grows, so that neighbours differ more as well; otherwise only slow
            states do, the running median of 9 values, and the noise from one operation to the next
            stays as it was measured.
    """
    logs = np.log(series.times)
    centred = logs - np.median(logs)
    states = centred if whole else median_filter(centred, size=_STATE, mode="nearest")
    rest = centred - states

    def pulled(factor: float) -> Series:
        times = np.exp(np.median(logs) + factor * states + rest)
        what = "all noise" if whole else "slow states"
        return Series(name=f"{series.name}, {what} to CV 50 %", times=times, real=False)

    low, high = 0.0, 20.0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if pulled(middle).variation < WILD_CV:
            low = middle
        else:
            high = middle
    return pulled(low)


def windows(series: Series, rng: np.random.Generator, count: int, length: int) -> Floats:
    """Returns stretches of consecutive values that begin anywhere, shape (count, length)."""
    starts = rng.integers(len(series.times) - length + 1, size=count)
    return np.asarray(series.times[starts[:, None] + np.arange(length)], dtype=np.float64)
