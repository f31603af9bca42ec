"""Noise models: six kinds of noise in a series of times, made up.

All are multiplicative with a coefficient of variation of 5 % underneath, so that a candidate that
is r times as slow has r times the time. Series are rows in the order of measurement.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]

CV: Final = 0.05
SIGMA: Final = math.sqrt(math.log1p(CV**2))
"""Standard deviation of the log of a log-normal time with that coefficient of variation."""

DRIFT: Final = 0.15
DRIFT_OPERATIONS: Final = 40
"""Operations over which the drift builds up: the 20 + 20 that a rival takes. The gate takes up to
120, and the drift goes on at that rate."""

STALLS: Final = 0.1
STALL_RANGE: Final = (1.5, 4.0)
SLOW_STATE: Final = 1.4
ENTER_SLOW: Final = 0.05
LEAVE_SLOW: Final = 0.15
RHO: Final = 0.6
DAY: Final = 0.05


def iid(rng: np.random.Generator, series: int, length: int) -> Floats:
    """Returns independent log-normal times."""
    return np.exp(SIGMA * rng.standard_normal((series, length)))


def stall(rng: np.random.Generator, series: int, length: int) -> Floats:
    """Returns times of which one in ten takes 1.5 to 4 times as long."""
    stalled = rng.random((series, length)) < STALLS
    factor = rng.uniform(*STALL_RANGE, (series, length))
    return iid(rng, series, length) * np.where(stalled, factor, 1.0)


def drift(rng: np.random.Generator, series: int, length: int) -> Floats:
    """Returns times that grow by 15 % every 40 operations."""
    return iid(rng, series, length) * (1 + DRIFT * np.arange(length) / DRIFT_OPERATIONS)


def regime(rng: np.random.Generator, series: int, length: int) -> Floats:
    """Returns times of a machine that now and then is 1.4 times as slow for a while.

    A Markov chain: the slow state is entered with probability 5 % per operation and left with 15 %.
    """
    slow = np.empty((series, length), dtype=bool)
    slow[:, 0] = rng.random(series) < ENTER_SLOW / (ENTER_SLOW + LEAVE_SLOW)
    draws = rng.random((series, length))
    for index in range(1, length):
        stays, enters = draws[:, index] >= LEAVE_SLOW, draws[:, index] < ENTER_SLOW
        slow[:, index] = np.where(slow[:, index - 1], stays, enters)
    return iid(rng, series, length) * np.where(slow, SLOW_STATE, 1.0)


def autoregressive(rng: np.random.Generator, series: int, length: int, rho: float) -> Floats:
    """Returns normal series of unit variance with a correlation from one value to the next."""
    shocks = rng.standard_normal((series, length))
    shocks[:, 1:] *= math.sqrt(1 - rho**2)
    return np.asarray(lfilter([1.0], [1.0, -rho], shocks, axis=1))


def ar1(rng: np.random.Generator, series: int, length: int) -> Floats:
    """Returns times whose logs follow their predecessors, with a correlation of .6."""
    return np.exp(SIGMA * autoregressive(rng, series, length, RHO))


def days(rng: np.random.Generator, series: int) -> Floats:
    """Returns the factor of one day for each series: another session is 5 % off."""
    return np.exp(DAY * rng.standard_normal((series, 1)))


REGIMES: Final[Mapping[str, Noise]] = {
    "iid": iid,
    "stall": stall,
    "drift": drift,
    "regime": regime,
    "ar1": ar1,
    "session": iid,
}
"""By name. In `session` a stored baseline has a day of its own; arms run together share theirs."""
