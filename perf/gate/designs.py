"""Designs of a comparison: which operations share a worker process, and when each is measured."""

import dataclasses
from typing import Final

import numpy as np

from orbax_bench_core.config import BLOCK_SIZE, PER_ARM
from orbax_bench_core.gate.blocks import Bools, Floats, Ints
from perf.gate.noise import autoregressive


@dataclasses.dataclass(frozen=True, kw_only=True)
class Design:
    """Which operations share a worker process, and when each is measured."""

    name: str  # what it is called in the tables
    per_life: int = 1  # operations of one slot of a block
    offsets: str = "nothing"
    """What has an offset of its own: nothing, an arm, a slot, or the option in each process."""
    per_process: int | None = None
    """Blocks that share a process of both arms; None where they do not."""
    in_turns: bool = False
    """Whether a worker ends before the next one starts; otherwise the four of a block are alive
    together and measure in rounds, forth and back."""
    tau: float = 0.0  # standard deviation of the log of such an offset

    @property
    def title(self) -> str:
        """Name with the offsets, such as `lives, tau 2 %`."""
        return self.name if self.offsets == "nothing" else f"{self.name}, tau {self.tau:.0%}"

    def blocks(self, operations: int) -> int:
        """Returns the blocks that so many operations per arm take."""
        return operations // (PER_ARM * self.per_life)

    def values(self, blocks: int) -> int:
        """Returns the operations of both arms in so many blocks."""
        return blocks * BLOCK_SIZE * self.per_life

    def places(self, blocks: int) -> Ints:
        """Returns when each operation was measured, shape (blocks, slots, operations of a slot)."""
        slot, turn = np.meshgrid(np.arange(BLOCK_SIZE), np.arange(self.per_life), indexing="ij")
        if self.in_turns:
            within = slot * self.per_life + turn
        else:
            within = turn * BLOCK_SIZE + np.where(turn % 2, BLOCK_SIZE - 1 - slot, slot)
        starts = np.arange(blocks) * BLOCK_SIZE * self.per_life
        return np.asarray(starts[:, None, None] + within, dtype=np.int64)

    def shift(self, rng: np.random.Generator, labels: Bools) -> Floats:
        """Returns the log offsets of comparisons, shape of their labels (series, blocks, slots)."""
        if self.offsets == "arm":
            arms = self.tau * rng.standard_normal((len(labels), 2, 1, 1))
            return np.where(labels, arms[:, 0], arms[:, 1])
        if self.offsets == "option":
            assert self.per_process is not None
            count = -(-labels.shape[1] // self.per_process)
            each = self.tau * self._of_processes(rng, len(labels), count)
            of_block = np.repeat(each, self.per_process, axis=1)[:, : labels.shape[1], None]
            return np.asarray(of_block * labels)
        if self.offsets == "slot":
            return np.asarray(self.tau * rng.standard_normal(labels.shape))
        return np.zeros(labels.shape)

    def _of_processes(self, rng: np.random.Generator, series: int, processes: int) -> Floats:
        return rng.standard_normal((series, processes))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dependent(Design):
    """A design in which what an option does in a process depends on the process before it."""

    correlation: float  # of the offsets of two processes in a row; 1 where all have the same

    @property
    def title(self) -> str:
        """Name with the offsets and their correlation."""
        return f"{super().title}, correlation {self.correlation:g}"

    def _of_processes(self, rng: np.random.Generator, series: int, processes: int) -> Floats:
        return autoregressive(rng, series, processes, self.correlation)


ONE_WORKER: Final = Design(name="one worker")
LIVES: Final = Design(name="lives", per_life=2, offsets="slot")
IN_TURNS: Final = Design(name="lives in turns", per_life=2, offsets="slot", in_turns=True)
PROCESSES: Final = Design(name="several processes", offsets="option", per_process=2)
PER_ARM_PROCESS: Final = Design(name="one process per arm", offsets="arm")


def with_tau(design: Design, tau: float) -> Design:
    """Returns a design whose processes differ by so much."""
    return dataclasses.replace(design, tau=tau)
