"""Design of a paired comparison: which worker processes the operations of a block have.

A process keeps an offset of its own: two workers that do the same differ by about 2 % here, by 5 %
at most. Where both arms share a worker it cancels; what an option does still differs from process
to process, so that the arms share several, a new one every few blocks. Where each arm holds one
process for the whole comparison its offset counts as a difference between the arms. With lives
every block has four processes, two of each arm, so that the process is what is randomised and its
offset is noise.
"""

import dataclasses
from collections.abc import Callable
from typing import Final, Literal, Self

import pydantic

from orbax_bench_core.config import BLOCK_SIZE, PER_ARM, GateConfig
from orbax_bench_core.sweep.pair import Pair
from orbax_bench_core.sweep.workers import placement

Workers = Literal["shared", "one_per_arm", "lives"]

_SMALL_OFFSET: Final = 0.01
"""Standard deviation of the offset of a process up to which one process per arm keeps the levels:
with 1 % of it REGRESSION is wrong in 1.0 % and PASS in 1.5 %."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessNoise:
    """Noise from process to process, as a noise passport has it; None if it is not known."""

    # upper 95 % bound of the standard deviation of a process's offset, as a share
    offset_high: float | None = None
    # lower 95 % bound of that of the log ratio of two options in one process
    interaction_low: float | None = None


ProcessNoiseOf = Callable[[Pair, GateConfig], ProcessNoise]
"""Returns the known facts of the processes of a pair."""


class PairDesign(pydantic.BaseModel):
    """Worker processes of one pair.

    Attributes:
        workers: `shared` when each worker measures both arms; `one_per_arm` when each arm has one
            for the whole comparison; `lives` when each of the 4 slots of a block has one of its
            own.
        operations_per_life: Measured operations of each slot: 1 without lives.
        blocks_per_process: Blocks in a row that one worker of both arms measures; None if the
            arms share no worker, or one for the whole comparison.
        after: Blocks before these lives, in which the arms shared workers and an operation carried
            over to the next: they are not judged. 0 where there were none.
        left_open: Noise that the design does not randomise, as the upper 95 % bound of its standard
            deviation: the offset of a process that an arm has for good. None when nothing was
            measured, and for other workers.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    workers: Workers = "shared"
    operations_per_life: pydantic.PositiveInt = 1
    blocks_per_process: pydantic.PositiveInt | None = None
    after: pydantic.NonNegativeInt = 0
    left_open: float | None = None

    @pydantic.model_validator(mode="after")
    def _one_operation_without_lives(self) -> Self:
        if not self.lives and self.operations_per_life != 1:
            raise ValueError("only a life has several operations")
        return self

    @property
    def lives(self) -> bool:
        """Whether each slot of a block has a worker of its own."""
        return self.workers == "lives"

    @property
    def block_size(self) -> int:
        """Operations in a block."""
        return BLOCK_SIZE * self.operations_per_life

    def repeat(self, block: int, slot: int, operation: int = 0) -> int:
        """Returns the index of a repeat: slots of a block are next to each other.

        Args:
            block: Index of the block, from 0.
            slot: Index of the slot in it, 0 to 3.
            operation: Index of the operation in the life of the slot; 0 without lives.
        """
        return block * self.block_size + slot * self.operations_per_life + operation

    def place(self, repeat: int) -> tuple[int, int, int]:
        """Returns block, slot and operation of a repeat."""
        block, rest = divmod(repeat, self.block_size)
        return (block, *divmod(rest, self.operations_per_life))

    def order(self, *, alive: bool) -> tuple[tuple[int, int], ...]:
        """Returns slot and operation of all repeats of a block, in the order of measurement.

        Args:
            alive: Whether the workers of all slots are alive at once. Then they take turns, and
                every second round goes through the slots backwards; otherwise each slot makes all
                of its operations before the next one begins.
        """
        slots, operations = range(BLOCK_SIZE), range(self.operations_per_life)
        if not alive:
            return tuple((slot, operation) for slot in slots for operation in operations)
        return tuple(
            (slot, operation)
            for operation in operations
            for slot in (reversed(slots) if operation % 2 else slots)
        )

    def begins_process(self, block: int) -> bool:
        """Returns whether a block is the first of a new worker of both arms."""
        return self.blocks_per_process is not None and block % self.blocks_per_process == 0

    def blocks(self, operations: int) -> int:
        """Returns the blocks after which each arm has so many operations."""
        return self.after - (-operations // (PER_ARM * self.operations_per_life))

    def ended(self, repeat: int) -> int:
        """Returns the operations per arm that are judged and stand before a repeat."""
        return max(0, self.operations(repeat - self.after * self.block_size))

    def operations(self, repeats: int) -> int:
        """Returns the operations per arm in so many repeats."""
        return repeats * PER_ARM // BLOCK_SIZE

    def looks(self, gate: GateConfig) -> tuple[int, ...]:
        """Returns the looks of the rule, in operations per arm."""
        return gate.looks_of(self.operations_per_life)

    def looks_with_more(self, gate: GateConfig) -> tuple[int, ...]:
        """Returns all looks, those that only `--more` reaches included."""
        return gate.looks_with_more(self.operations_per_life)

    def last_look(self, gate: GateConfig) -> int:
        """Returns the last look of all, which is one at stalls, in operations per arm."""
        return gate.looks_at_all(self.operations_per_life)[-1]


def lives_of(gate: GateConfig, after: int = 0) -> PairDesign:
    """Returns the design of lives, from the block `after` on."""
    return PairDesign(workers="lives", operations_per_life=gate.operations_per_life, after=after)


def design_of(pair: Pair, gate: GateConfig, *, passport: ProcessNoise | None = None) -> PairDesign:
    """Returns the design of a pair: lives wherever an offset of a process could be a difference.

    Args:
        pair: The two points.
        gate: The rules, which may ask for lives always.
        passport: What is known of the noise from process to process on this machine.
    """
    known = passport or ProcessNoise()
    lives = lives_of(gate)
    if gate.lives == "always":
        return lives
    if placement(pair.baseline) == placement(pair.candidate):
        interacts = known.interaction_low is not None and known.interaction_low > 0
        return lives if interacts else PairDesign(blocks_per_process=gate.blocks_per_process)
    if known.offset_high is not None and known.offset_high <= _SMALL_OFFSET:
        return PairDesign(workers="one_per_arm", left_open=known.offset_high)
    return lives
