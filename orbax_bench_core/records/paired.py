"""The blocks of a paired comparison: from records to arrays."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.records.operation_times import repeat_seconds
from orbax_bench_core.records.record import PEER_FAILED, Record
from orbax_bench_core.sweep import BLOCK_SIZE

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairedSeries:
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


def paired_series(records: Iterable[Record]) -> PairedSeries:
    """Returns the complete blocks among the records of one pair.

    A block counts when all its operations passed on every host. An operation is taken when every
    repeat of both arms has it.

    Args:
        records: The records of the pair; warm-ups are passed over.
    """
    import numpy as np

    repeats: dict[int, list[Record]] = collections.defaultdict(list)
    for record in records:
        if record.block is not None and not record.warmup:
            repeats[record.repeat].append(record)
    hosts = _hosts(repeats.values())
    uneven = [arm for arm, counts in hosts.items() if len(counts) > 1]
    if uneven:
        counts = ", ".join(map(str, sorted(hosts[uneven[0]])))
        return _nothing(f"the {uneven[0]} was measured with different numbers of hosts: {counts}")
    failures = [found for index in sorted(repeats) if _failure(found := repeats[index])]
    problem = _failure(failures[0]) if failures else ""
    failed = tuple(dict.fromkeys(found[0].arm for found in failures if found[0].arm is not None))
    blocks: dict[int, list[list[Record]]] = collections.defaultdict(list)
    for index in sorted(repeats):
        if not _failure(repeats[index]):
            blocks[index // BLOCK_SIZE].append(repeats[index])
    whole = [block for _, block in sorted(blocks.items()) if len(block) == BLOCK_SIZE]
    seconds = [[repeat_seconds(repeat) for repeat in block] for block in whole]
    every = [repeat for block in seconds for repeat in block]
    shared = [name for name in (every[0] if every else {}) if all(name in one for one in every)]
    return PairedSeries(
        labels=np.array(
            [[repeat[0].arm == "candidate" for repeat in block] for block in whole], dtype=bool
        ).reshape(len(whole), BLOCK_SIZE),
        times={
            name: np.array([[repeat[name] for repeat in block] for block in seconds])
            for name in shared
        },
        problem=problem,
        failed=failed,
    )


def _hosts(repeats: Iterable[Sequence[Record]]) -> dict[Arm, set[int]]:
    found: dict[Arm, set[int]] = {arm: set() for arm in ARMS}
    for repeat in repeats:
        for record in repeat:
            assert record.arm is not None
            found[record.arm].add(record.num_hosts)
    return found


def _nothing(problem: str) -> PairedSeries:
    import numpy as np

    return PairedSeries(labels=np.zeros((0, BLOCK_SIZE), dtype=bool), times={}, problem=problem)


def _failure(hosts: Sequence[Record]) -> str:
    """Returns why one repeat does not count; empty when it does."""
    arm = hosts[0].arm
    errors = [record.error for record in hosts if record.error is not None]
    if errors:
        error = min(errors, key=lambda found: found.type == PEER_FAILED)
        word = "was skipped" if hosts[0].status == "skipped" else "failed"
        return f"the {arm} {word} in block {hosts[0].block}: {error.type}: {error.message}"
    if len(hosts) < hosts[0].num_hosts:
        missing = sorted(set(range(hosts[0].num_hosts)) - {record.host for record in hosts})
        return (
            f"the {arm} has no record of host {', '.join(map(str, missing))} "
            f"in block {hosts[0].block}"
        )
    return ""
