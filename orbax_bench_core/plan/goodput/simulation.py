"""Simulated goodput: exponential failures in a job that saves at an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orbax_bench_core.plan.goodput.job import Job

if TYPE_CHECKING:
    import numpy as np

CYCLES: Final = 100_000
"""Failures of a simulation; the goodput is then known to about 0.2 points."""
_JOBS: Final = 500


def simulate(
    tau: float, d: float, background: float, slowdown: float, recovery: float, waits: np.ndarray
) -> float:
    """Returns the goodput of saves to one tier.

    From a failure on, a recovery is followed by useful stretches of `tau`, each with a save after
    it. A save is safe when its background part has ended; the next one waits for that.
    """
    import numpy as np

    period = d + max(background, tau + slowdown * background)
    up = waits - recovery - background - (tau + d)
    saves = np.where(up >= 0, np.floor(up / period) + 1, 0)
    return float(saves.sum() * tau / waits.sum())


def waits_of(mtbf: float, seed: int, cycles: int = CYCLES) -> np.ndarray:
    """Returns seconds from failure to failure; the same for one seed, scaled by `mtbf`."""
    import numpy as np

    return np.random.default_rng(seed).exponential(mtbf, cycles)


def simulate_two_tiers(
    taus: tuple[float, float], job: Job, seed: int, cycles: int = CYCLES
) -> float:
    """Returns the goodput of local saves with every so manieth also to storage, in the background.

    Many jobs run side by side; in each, a failure that local checkpoints survive goes back to the
    last of them, and any other to the last save that storage has.
    """
    import numpy as np

    assert job.local is not None
    local, every = job.local, max(1, round(taus[1] / taus[0]))
    stretch = taus[0] + local.blocking_s
    whole = every * stretch + job.blocking_s + job.slowdown * job.background_s
    generator = np.random.default_rng(seed)
    stored = np.zeros(_JOBS)  # saves to storage that are safe
    kept = np.zeros(_JOBS)  # local saves since then
    wall = np.zeros(_JOBS)
    recovery = np.zeros(_JOBS)
    for _ in range(max(1, cycles // _JOBS)):
        wait = generator.exponential(job.mtbf_s, _JOBS)
        survived = generator.random(_JOBS) < local.share
        begin = kept // every * whole + kept % every * stretch
        end = begin + np.maximum(0, wait - recovery)
        done = end // whole
        saves = done * every + np.minimum((end - done * whole) // stretch, every)
        safe = np.maximum(0, np.floor((end - job.background_s) / whole))
        safe = np.where(wait > recovery, safe, 0)
        stored += safe
        kept = np.where(survived, np.maximum(saves, kept) - safe * every, 0)
        recovery = np.where(survived, local.recovery_s, job.recovery_s)
        wall += wait
    useful = (stored * every + kept) * taus[0]
    return float(useful.sum() / wall.sum())
