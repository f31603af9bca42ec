"""Blocks: times of both arms, checked before any statistics see them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

Better = Literal["lower", "higher"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SLOTS: Final = 4
PER_ARM: Final = 2
"""Operations of each arm in one block."""

_FEWEST_BLOCKS: Final = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Log costs of both arms.

    Attributes:
        logs: Natural log of what each operation cost, shape (blocks, slots); more is worse.
        candidate: Which slots were the candidate's, same shape, equally many in every block.
    """

    logs: Floats
    candidate: Bools

    def __len__(self) -> int:
        return len(self.logs)

    @property
    def operations(self) -> int:
        """Operations per arm."""
        return int(self.candidate.sum())

    def first(self, blocks: int) -> Blocks:
        """Returns the first so many blocks."""
        return Blocks(logs=self.logs[:blocks], candidate=self.candidate[:blocks])

    def log_ratios(self) -> Floats:
        """Returns the mean log of the candidate less that of the baseline, one per block."""
        baseline = np.where(self.candidate, 0.0, self.logs).sum(axis=1)
        candidate = np.where(self.candidate, self.logs, 0.0).sum(axis=1)
        return np.asarray((candidate - baseline) / PER_ARM, dtype=np.float64)


def read_blocks(times: Any, labels: Any, better: Better = "lower") -> Blocks | str:
    """Checks what was measured.

    Args:
        times: Positive values, shape (blocks, 4): by block, and by slot in the order of execution.
        labels: True where the candidate ran, same shape, two per block.
        better: Which way the values are good. Where higher is better the reciprocal is what an
            operation costs, so that a ratio above 1 is worse for every metric.

    Returns:
        The blocks, or in words what is wrong with them.
    """
    try:
        values = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        return "times are not a table of numbers: every block needs a number in each of its 4 slots"
    if values.ndim != 2 or values.shape[1] != SLOTS:
        return f"times have the shape {values.shape}, not (blocks, {SLOTS})"
    candidate = _candidate(labels)
    if isinstance(candidate, str):
        return candidate
    if candidate.shape != values.shape:
        return f"labels have the shape {candidate.shape}, but times have {values.shape}"
    if problem := _unbalanced(candidate) or _unusable(values) or _too_few(len(values)):
        return problem
    logs = np.log(values)
    return Blocks(logs=-logs if better == "higher" else logs, candidate=candidate)


def random_labels(blocks: int, rng: np.random.Generator) -> Bools:
    """Returns the order of the arms in every block, each drawn from the six arrangements.

    Returns:
        True for the candidate, shape (blocks, 4).
    """
    return np.asarray(rng.random((blocks, SLOTS)).argsort(axis=1) < PER_ARM)


def _candidate(labels: Any) -> Bools | str:
    try:
        found = np.asarray(labels)
    except ValueError:
        return "labels are not a table: every block needs one in each of its 4 slots"
    if found.dtype != np.bool_ and not (found.dtype.kind in "iu" and np.isin(found, (0, 1)).all()):
        return "labels must be true for the candidate and false for the baseline, nothing else"
    return found.astype(np.bool_)


def _unbalanced(candidate: Bools) -> str:
    for block, count in enumerate(candidate.sum(axis=1).tolist()):
        if count in (0, SLOTS):
            return f"block {block} lacks the {'baseline' if count else 'candidate'} arm"
        if count != PER_ARM:
            return (
                f"block {block} has {count} operations of the candidate and {SLOTS - count} of the "
                f"baseline, not {PER_ARM} of each"
            )
    return ""


def _unusable(values: Floats) -> str:
    for (block, slot), value in np.ndenumerate(values):
        if not (math.isfinite(value) and value > 0):
            return (
                f"the value in block {block}, slot {slot} is {value:g}: a ratio needs positive, "
                "finite numbers"
            )
    return ""


def _too_few(blocks: int) -> str:
    if blocks >= _FEWEST_BLOCKS:
        return ""
    count = "1 block" if blocks == 1 else "no blocks"
    return f"{count}: noise shows only from {_FEWEST_BLOCKS} blocks on"
