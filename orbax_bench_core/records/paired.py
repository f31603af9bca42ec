"""Complete blocks of a paired comparison, as arrays of first attempts."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import ARMS, BLOCK_SIZE, Arm
from orbax_bench_core.reasons import NO_REASON, Reasons, because
from orbax_bench_core.records.repeats import Repeat, operations_in_order, total_seconds

if TYPE_CHECKING:
    import numpy as np


_FIRST_BLOCKS: Final = 4
"""Blocks that tell what a repeat takes: no more than the first look has, so that it stays."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FirstAttempts:
    """First attempts of one arm; retries are for diagnosis, and count nowhere."""

    count: int = 0  # how many have ended, in complete blocks and others
    failed: int = 0  # how many of them failed or hung
    block: int | None = None  # block of the first failure; None without one
    # its error, such as `ValueError: no space`; empty without one; earlier files have the block too
    example: str = ""

    @property
    def all_failed(self) -> bool:
        """Whether there were some, and none of them passed."""
        return 0 < self.count == self.failed


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairedTimes:
    """The complete blocks of one pair.

    A block has 4 slots, two of each arm. A slot is one operation or, where each slot had a worker
    of its own, the life of that worker with m operations.
    """

    # which slots are the candidate's; bool, shape (blocks, 4), in the order in which they were
    # measured
    labels: np.ndarray
    # seconds of each operation on its slowest host, float, shape (blocks, 4), or (blocks, 4, m)
    # with lives. What a repeat does several times is summed. `inf` where the first attempt failed
    # or hung, whatever a retry did; `nan` where the repeat lacks an operation that another one has.
    times: dict[str, np.ndarray]
    cpu: dict[str, np.ndarray]  # CPU seconds of each operation in the same way, as `save:cpu`
    failed: np.ndarray  # which first attempts failed or hung; bool, shape as that of the times
    attempts: dict[Arm, FirstAttempts]  # first attempts of each arm
    # why there are no more blocks, or why they cannot be used; empty when nothing is wrong
    problem: Reasons = NO_REASON
    # whether there is nothing to compare: an arm cannot be measured, or in the first block no
    # attempt of either arm passed
    stopped: bool = False
    lives: bool = False  # whether each slot had a worker of its own
    # how many lives went on in a new process although nothing had failed: somebody interrupted the
    # run
    continued: int = 0
    # seconds that a repeat of the first blocks took with all that is around its operations, the
    # median of these; 0 without a block
    repeat_s: float = 0.0

    @classmethod
    def of(cls, repeats: Iterable[Repeat]) -> PairedTimes:
        """Takes the complete blocks among the repeats of one pair; warm-ups are passed over.

        A block is complete when the first attempt of each of its operations has passed or failed.
        """
        import numpy as np

        measured = sorted(
            (one for one in cls.used(repeats) if one.block is not None and not one.warmup),
            key=lambda repeat: repeat.index,
        )
        per_life = _per_life(measured)
        uneven = _uneven(measured)
        unusable = uneven or _impossible(measured)
        whole = [] if uneven else _whole(measured, per_life or 1)
        shape = (len(whole), BLOCK_SIZE, *([] if per_life is None else [per_life]))
        slots = [block[:: per_life or 1] for block in whole]
        failed = np.array(
            [[repeat.first_failed for repeat in block] for block in whole], dtype=bool
        ).reshape(shape)
        nothing = NO_REASON
        if len(failed) and failed[0].all():
            nothing = because("nothing_passed", said=whole[0][0].first_reason)
        return cls(
            labels=np.array(
                [[repeat.series.arm == "candidate" for repeat in block] for block in slots],
                dtype=bool,
            ).reshape(len(whole), BLOCK_SIZE),
            times=_times(whole, shape, Repeat.seconds),
            cpu=_times(whole, shape, Repeat.cpu_seconds),
            failed=failed,
            attempts={arm: _attempts(measured, arm) for arm in ARMS},
            problem=unusable or nothing or _lost(measured),
            stopped=bool(unusable or nothing),
            lives=per_life is not None,
            continued=_count_continued(measured),
            repeat_s=_repeat_s(whole[:_FIRST_BLOCKS]),
        )

    @property
    def judged(self) -> dict[str, np.ndarray]:
        """All that a verdict may be given on: times, and CPU times."""
        return {**self.times, **self.cpu}

    @staticmethod
    def used(repeats: Iterable[Repeat]) -> list[Repeat]:
        """Returns the measurements of a pair by its last design.

        Arms that share workers get lives once an operation carries over to the next.
        """
        found = list(repeats)
        if not any(repeat.life is not None for repeat in found):
            return found
        return [repeat for repeat in found if repeat.block is None or repeat.life is not None]

    def of_arms(self, operation: str) -> dict[Arm, tuple[float, ...]]:
        """Returns the seconds of each arm that passed, in the order of the blocks and rounds."""
        import numpy as np

        return {
            arm: tuple(map(float, times[np.isfinite(times)]))
            for arm, times in self._by_arm(self.judged[operation]).items()
        }

    def failed_of_arms(self) -> dict[Arm, tuple[int, ...]]:
        """Returns which first attempts of each arm failed, from 0, in the order of `of_arms`."""
        import numpy as np

        return {
            arm: tuple(map(int, np.flatnonzero(failed)))
            for arm, failed in self._by_arm(self.failed).items()
        }

    def _by_arm(self, values: np.ndarray) -> dict[Arm, np.ndarray]:
        """Returns values of one per operation, by arm, in the order of the blocks and rounds."""
        import numpy as np

        per_slot = values.shape[2] if values.ndim > self.labels.ndim else 1
        rounds = values.reshape(*self.labels.shape, per_slot).swapaxes(1, 2)
        labels = np.broadcast_to(self.labels[:, None, :], rounds.shape)
        return {"baseline": rounds[~labels], "candidate": rounds[labels]}

    def log_ratios(self, operation: str) -> tuple[float, ...]:
        """Returns the log ratio of candidate to baseline in each block, by geometric mean.

        It is of what passed; `nan` in a block in which nothing of an arm did.

        Args:
            operation: Name of the operation; of its CPU time with `:cpu` at the end.

        Returns:
            Natural logs, one for each block.
        """
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.judged[operation].reshape(len(self.labels), BLOCK_SIZE, -1))
            labels = np.broadcast_to(self.labels[:, :, None], logs.shape)
            means = [_mean(logs, np.isfinite(logs) & side) for side in (labels, ~labels)]
            return tuple(map(float, means[0] - means[1]))


def _mean(logs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Returns the mean of what is chosen of each block, shape (blocks,); `nan` of nothing."""
    import numpy as np

    total = np.where(chosen, logs, 0.0).sum(axis=(1, 2))
    return np.asarray(total / chosen.sum(axis=(1, 2)), dtype=np.float64)


def _per_life(repeats: Iterable[Repeat]) -> int | None:
    """Returns the operations of one life; None without lives.

    The index of a repeat is that of its life times this number, plus what came before it in the
    life, so the first operation of any life but the very first one gives it.
    """
    found = [(repeat.index, repeat.block, repeat.life) for repeat in repeats]
    lives = [
        (index, block * BLOCK_SIZE + life)
        for index, block, life in found
        if block is not None and life is not None
    ]
    if not lives:
        return None
    return min((index // number for index, number in lives if number), default=1)


def _whole(repeats: Iterable[Repeat], per_life: int) -> list[list[Repeat]]:
    """Returns the complete blocks, each with its repeats in the order of slots and operations."""
    blocks: dict[int, list[Repeat]] = collections.defaultdict(list)
    for repeat in repeats:
        if repeat.block is not None and repeat.first_attempt in ("passed", "failed"):
            blocks[repeat.block].append(repeat)
    size = BLOCK_SIZE * per_life
    return [block for _, block in sorted(blocks.items()) if len(block) == size]


def _repeat_s(blocks: Sequence[Sequence[Repeat]]) -> float:
    """Returns the seconds of a repeat, by the median of blocks from their start to their end."""
    found = []
    for block in blocks:
        records = [record for repeat in block for record in repeat.records.values()]
        begun = min(record.started_at for record in records)
        ended = max(
            record.started_at + datetime.timedelta(seconds=record.duration_s) for record in records
        )
        found.append((ended - begun).total_seconds() / len(block))
    return statistics.median(found) if found else 0.0


def _times(
    blocks: Sequence[Sequence[Repeat]],
    shape: tuple[int, ...],
    seconds_of: Callable[[Repeat], Mapping[tuple[str, int], float]],
) -> dict[str, np.ndarray]:
    """Returns the seconds of every operation that any repeat of these blocks has."""
    import numpy as np

    repeats = [repeat for block in blocks for repeat in block]
    seconds = [total_seconds(seconds_of(repeat)) if repeat.counts else {} for repeat in repeats]
    names = operations_in_order(seconds)

    def value(repeat: Repeat, found: dict[str, float], name: str) -> float:
        # A failed attempt ranks behind every time; where an operation is missing, nothing is known.
        return float("inf") if repeat.first_failed else found.get(name, float("nan"))

    return {
        name: np.array(
            [value(repeat, found, name) for repeat, found in zip(repeats, seconds, strict=True)]
        ).reshape(shape)
        for name in names
    }


def _attempts(repeats: Iterable[Repeat], arm: Arm) -> FirstAttempts:
    ended = [
        repeat
        for repeat in repeats
        if repeat.series.arm == arm and repeat.first_attempt in ("passed", "failed")
    ]
    failed = [repeat for repeat in ended if repeat.first_failed]
    block, example = (failed[0].block, failed[0].first_reason) if failed else (None, "")
    return FirstAttempts(count=len(ended), failed=len(failed), block=block, example=example)


def _count_continued(repeats: Iterable[Repeat]) -> int:
    """Returns how many lives were interrupted between two operations, and went on elsewhere."""
    lives = itertools.groupby(
        (repeat for repeat in repeats if repeat.life is not None),
        key=lambda repeat: (repeat.block, repeat.life),
    )
    return sum(
        any(
            before.first_attempt == "passed"
            and before.first_worker
            and after.first_worker
            and before.first_worker != after.first_worker
            for before, after in itertools.pairwise(life)
        )
        for _, life in lives
    )


def _uneven(repeats: Iterable[Repeat]) -> Reasons:
    """Returns which arm was measured with different numbers of hosts, if any was."""
    hosts: dict[Arm | None, set[int]] = {arm: set() for arm in ARMS}
    for repeat in repeats:
        hosts[repeat.series.arm].add(repeat.num_hosts)
    for arm, counts in hosts.items():
        if len(counts) > 1:
            return because("hosts_differ", arm=arm, hosts=tuple(sorted(counts)))
    return NO_REASON


def _impossible(repeats: Iterable[Repeat]) -> Reasons:
    """Returns which arm cannot be measured at all, if one cannot."""
    for repeat in repeats:
        if repeat.impossible:
            arm, status, block = repeat.series.arm, repeat.status, repeat.block
            return because(
                "arm_impossible", arm=arm, status=status, block=block, said=repeat.reason
            )
    return NO_REASON


def _lost(repeats: Iterable[Repeat]) -> Reasons:
    """Returns which repeat was cut off, so that some of its hosts have no record."""
    for repeat in repeats:
        if repeat.first_attempt is None and repeat.missing:
            arm, hosts = repeat.series.arm, tuple(repeat.missing)
            return because("record_lost", arm=arm, hosts=hosts, block=repeat.block)
    return NO_REASON
