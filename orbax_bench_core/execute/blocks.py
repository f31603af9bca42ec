"""The order of the arms within the blocks of a paired comparison."""

from __future__ import annotations

import itertools
import random
from typing import Final

from orbax_bench_core.config.arms import Arm

BLOCK_SIZE: Final = 4
"""Operations in a block: two of each arm."""

_ARRANGEMENTS: Final[list[tuple[Arm, ...]]] = sorted(
    set(itertools.permutations(("baseline", "baseline", "candidate", "candidate")))
)


def arrangement(run_id: str, point_id: str, block: int) -> tuple[Arm, ...]:
    """Returns which arm each operation of a block measures, one of six orders with equal chance.

    The id of the run is the seed: a run that was interrupted goes on with the order that it began
    with, and two runs of one suite have different orders, so that a disturbance at the same point
    of every run does not always meet the same arm.

    Args:
        run_id: Id of the run.
        point_id: Id of the pair.
        block: Index of the block.
    """
    return random.Random(f"{run_id}:{point_id}:{block}").choice(_ARRANGEMENTS)
