"""Blocks: values of both arms, checked before any statistics see them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from orbax_bench_core.config import BLOCK_SIZE, PER_ARM
from orbax_bench_core.reasons import NO_REASON, Reasons, because

Better = Literal["lower", "higher"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FAILED: Final = math.log(10.0)
"""Log penalty of a failed or hung attempt: ten times as slow as the slowest that passed."""

_FEWEST_BLOCKS: Final = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Log costs of both arms.

    Attributes:
        logs: Natural log of what each operation cost, shape (blocks, slots, operations of a slot);
            more is worse. Where `failed`, the largest other one and log 10.
        candidate: Which slots were the candidate's, shape (blocks, slots), equally many in every
            block. A slot is one operation, or several in the life of one worker.
        failed: Which operations failed or hung, same shape as `logs`.
        lives: Whether every slot is the life of a worker process of its own.
        per_process: Blocks in a row that share one worker process; None if all of them do, or
            each arm or slot has its own.
    """

    logs: Floats
    candidate: Bools
    failed: Bools
    lives: bool = False
    per_process: int | None = None

    def __len__(self) -> int:
        return len(self.logs)

    @property
    def per_life(self) -> int:
        """Operations of one slot."""
        return int(self.logs.shape[2])

    @property
    def operations(self) -> int:
        """Operations per arm."""
        return int(self.candidate.sum()) * self.per_life

    @property
    def labels(self) -> Bools:
        """Which operations were the candidate's, shape of `logs`."""
        return np.broadcast_to(self.candidate[:, :, None], self.logs.shape)

    def first(self, blocks: int) -> Blocks:
        """Returns the first so many blocks, as if there were no others."""
        failed = self.failed[:blocks]
        return Blocks(
            logs=_with_failed(self.logs[:blocks], failed),
            candidate=self.candidate[:blocks],
            failed=failed,
            lives=self.lives,
            per_process=self.per_process,
        )

    def some_worked(self, candidate: bool) -> bool:
        """Returns whether any operation of an arm worked."""
        return not self.failed[self.candidate == candidate].all()

    def median(self) -> float:
        """Returns the median of what an operation of the baseline cost that worked."""
        return math.exp(np.median(self.logs[~self.labels & ~self.failed]))

    def as_baseline(self, shift: float, floor: float = 0.0) -> Floats:
        """Returns all logs as they would be without the slow-down that is supposed.

        It is g(t) = max(exp(shift) t, t + floor), so what the candidate took is mapped back by
        min(t / exp(shift), t - floor). What is not positive then ranks below everything else.

        Args:
            shift: Natural log of the ratio.
            floor: Seconds; 0 for none.

        Returns:
            Natural logs of seconds, shape (blocks, slots, operations).
        """
        shifted = self.logs - shift * self.candidate[:, :, None]
        if floor <= 0:
            return shifted
        with np.errstate(invalid="ignore", divide="ignore"):
            less = np.log(np.exp(self.logs) - floor)
        found = np.where(self.labels, np.fmin(shifted, less), self.logs)
        impossible = self.labels & ~np.isfinite(less)
        lowest = found[~impossible].min() - FAILED
        return np.where(impossible, lowest, found)


def read_blocks(
    times: Any, labels: Any, better: Better = "lower", per_process: int | None = None
) -> Blocks | Reasons:
    """Checks what was measured; of what cannot be judged it returns why.

    Args:
        times: Positive values, shape (blocks, 4): by block, and by slot in the order of execution;
            or (blocks, 4, m) where a slot is the life of a worker with m operations. `inf` is an
            operation that failed or hung, `nan` one that its repeat lacks.
        labels: True where the candidate ran, shape (blocks, 4), two per block.
        better: Which way the values are good. Where higher is better the reciprocal is what an
            operation costs, so that a ratio above 1 is worse for every metric.
        per_process: Blocks in a row that share one worker process; nothing to lives.
    """
    try:
        values = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        return because("malformed", what="times")
    if values.ndim not in (2, 3) or values.shape[1] != BLOCK_SIZE or not values.shape[-1]:
        return because("malformed", what="times", shape=values.shape)
    candidate = read_labels(labels)
    if isinstance(candidate, tuple):
        return candidate
    if candidate.shape != values.shape[:2]:
        return because("malformed", what="labels", shape=candidate.shape)
    lives = values.ndim > candidate.ndim
    values = values if lives else values[:, :, None]
    problem = _missing(values, candidate) or _unusable(values) or _too_few(len(values))
    if problem:
        return problem
    failed = np.isposinf(values)
    for arm, chosen in (("baseline", ~candidate), ("candidate", candidate)):
        # A candidate that always fails is a finding, a baseline that does is none.
        if failed[chosen].all() and (arm == "baseline" or failed.all()):
            return because("always_failed", arm=arm)
    logs = np.log(np.where(failed, 1.0, values))
    costs = -logs if better == "higher" else logs
    return Blocks(
        logs=_with_failed(costs, failed),
        candidate=candidate,
        failed=failed,
        lives=lives,
        per_process=None if lives else per_process,
    )


def read_labels(labels: Any) -> Bools | Reasons:
    """Returns which slots are the candidate's, shape (blocks, 4), or what is wrong with them."""
    try:
        found = np.asarray(labels)
    except ValueError:
        return because("malformed", what="labels")
    if found.dtype != np.bool_ and not (found.dtype.kind in "iu" and np.isin(found, (0, 1)).all()):
        return because("malformed", what="labels")
    candidate = found.astype(np.bool_)
    if candidate.ndim != 2 or candidate.shape[1] != BLOCK_SIZE:
        return because("malformed", what="labels", shape=candidate.shape)
    return _unbalanced(candidate) or candidate


def random_labels(blocks: int, rng: np.random.Generator) -> Bools:
    """Returns the order of the arms in every block, each drawn from the six arrangements.

    Returns:
        True for the candidate, shape (blocks, 4).
    """
    return np.asarray(rng.random((blocks, BLOCK_SIZE)).argsort(axis=1) < PER_ARM)


def _with_failed(logs: Floats, failed: Bools) -> Floats:
    """Returns logs in which what failed is ten times as slow as the slowest that worked."""
    if not failed.any():
        return logs
    slowest = 0.0 if failed.all() else float(logs[~failed].max())
    return np.where(failed, slowest + FAILED, logs)


def _unbalanced(candidate: Bools) -> Reasons:
    for block, count in enumerate(candidate.sum(axis=1).tolist()):
        if count != PER_ARM:
            baseline = BLOCK_SIZE - count
            return because("arms_unbalanced", block=block, candidate=count, baseline=baseline)
    return NO_REASON


def _missing(values: Floats, candidate: Bools) -> Reasons:
    lacks = np.isnan(values)
    found = NO_REASON
    for arm, chosen in (("baseline", ~candidate), ("candidate", candidate)):
        count = int(lacks[chosen].sum())
        if count:
            block = int((lacks & chosen[:, :, None]).any(axis=(1, 2)).argmax())
            of = int(chosen.sum()) * values.shape[2]
            found += because("lacks", arm=arm, lacking=count, repeats=of, first_block=block)
    return found


def _unusable(values: Floats) -> Reasons:
    bad = ~(values > 0)
    if not bad.any():
        return NO_REASON
    block, slot, _ = (int(place[0]) for place in bad.nonzero())
    return because("unusable_value", block=block, slot=slot, value=f"{values[bad][0]:g}")


def _too_few(blocks: int) -> Reasons:
    if blocks >= _FEWEST_BLOCKS:
        return NO_REASON
    return because("too_few_blocks", blocks=blocks, fewest=_FEWEST_BLOCKS)
