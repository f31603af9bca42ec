"""Complete blocks of a paired comparison, as arrays."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.records.operation_times import total_seconds
from orbax_bench_core.records.repeats import Repeat
from orbax_bench_core.sweep import BLOCK_SIZE

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairedTimes:
    """The complete blocks of one pair.

    Attributes:
        labels: Which operations are the candidate's; bool, shape (blocks, 4), in the order in which
            they were measured.
        times: Seconds of each operation on its slowest host, float, shape (blocks, 4). Blocks that
            do the same operation several times in a repeat have its sum.
        problem: Why there are no more blocks, or why they cannot be used; empty when nothing is
            wrong.
        failed: The arms that failed.
    """

    labels: np.ndarray
    times: dict[str, np.ndarray]
    problem: str = ""
    failed: tuple[Arm, ...] = ()

    @classmethod
    def of(cls, repeats: Iterable[Repeat]) -> PairedTimes:
        """Takes the complete blocks among the repeats of one pair; warm-ups are passed over.

        A block counts when all its operations passed on every host. An operation is taken when
        every repeat of both arms has it.
        """
        import numpy as np

        measured = sorted(
            (repeat for repeat in repeats if repeat.block is not None and not repeat.warmup),
            key=lambda repeat: repeat.index,
        )
        uneven = _uneven(measured)
        if uneven:
            return cls(labels=np.zeros((0, BLOCK_SIZE), dtype=bool), times={}, problem=uneven)
        failures = [repeat for repeat in measured if not repeat.counts]
        blocks: dict[int, list[Repeat]] = collections.defaultdict(list)
        for repeat in measured:
            if repeat.counts:
                blocks[repeat.index // BLOCK_SIZE].append(repeat)
        whole = [block for _, block in sorted(blocks.items()) if len(block) == BLOCK_SIZE]
        seconds = [[total_seconds(repeat.seconds()) for repeat in block] for block in whole]
        every = [repeat for block in seconds for repeat in block]
        shared = [
            name
            for name in (every[0] if every else {})
            if all(name in seconds for seconds in every)
        ]
        return cls(
            labels=np.array(
                [[repeat.series.arm == "candidate" for repeat in block] for block in whole],
                dtype=bool,
            ).reshape(len(whole), BLOCK_SIZE),
            times={
                name: np.array([[repeat[name] for repeat in block] for block in seconds])
                for name in shared
            },
            problem=_failure(failures[0]) if failures else "",
            failed=tuple(
                dict.fromkeys(
                    repeat.series.arm for repeat in failures if repeat.series.arm is not None
                )
            ),
        )

    def of_arms(self, operation: str) -> dict[Arm, tuple[float, ...]]:
        """Returns the seconds of each arm in the order in which they were measured."""
        times = self.times[operation]
        sides: dict[Arm, np.ndarray] = {"baseline": ~self.labels, "candidate": self.labels}
        return {arm: tuple(map(float, times[chosen])) for arm, chosen in sides.items()}

    def log_ratios(self, operation: str) -> tuple[float, ...]:
        """Returns the log ratio of candidate to baseline, by geometric mean, in each block."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(self.times[operation])
        signs = np.where(self.labels, 2 / BLOCK_SIZE, -2 / BLOCK_SIZE)
        return tuple(map(float, (logs * signs).sum(axis=1)))


def _uneven(repeats: Iterable[Repeat]) -> str:
    """Returns which arm was measured with different numbers of hosts; empty when none was."""
    hosts: dict[Arm | None, set[int]] = {arm: set() for arm in ARMS}
    for repeat in repeats:
        hosts[repeat.series.arm].add(repeat.num_hosts)
    for arm, counts in hosts.items():
        if len(counts) > 1:
            numbers = ", ".join(map(str, sorted(counts)))
            return f"the {arm} was measured with different numbers of hosts: {numbers}"
    return ""


def _failure(repeat: Repeat) -> str:
    """Returns why one repeat does not count."""
    arm = repeat.series.arm
    if repeat.error is not None:
        word = "was skipped" if repeat.status == "skipped" else "failed"
        return f"the {arm} {word} in block {repeat.block}: {repeat.reason}"
    missing = ", ".join(map(str, repeat.missing))
    return f"the {arm} has no record of host {missing} in block {repeat.block}"
