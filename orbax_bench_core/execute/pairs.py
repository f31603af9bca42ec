"""Blocks of both arms of each pair, look by look, until each pair is settled."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from orbax_bench_core.execute.runner import Runner, runner_of
from orbax_bench_core.execute.session import Session
from orbax_bench_core.sweep import BLOCK_SIZE, Pair, arrangement

Settled = Callable[[Pair, Sequence[float]], bool]
"""Judges a pair after each look: whether it needs no more blocks.

It is given the pair and the seconds that each start of workers took that had to take turns.
"""


def run_pairs(session: Session, settled: Settled) -> None:
    """Runs blocks of both arms of every pair of a session, look by look, until each is settled.

    All pairs are brought to one look before any goes on to the next, so that each pair's blocks are
    spread over the run and every pair has an early answer. `settled` is asked after each look, also
    when an arm has failed.

    Raises:
        CannotRecord: A record could not be written.
    """
    looks = [0, *(look * 2 // BLOCK_SIZE for look in session.info.gate.looks)]
    unsettled = list(session.pairs)
    with runner_of(session) as runner:
        for first, end in itertools.pairwise(looks):
            going_on = []
            for pair in unsettled:
                started = len(runner.starts)
                whole = _run_blocks(runner, pair, range(first, end), session.info.order_seed)
                if not settled(pair, runner.starts[started:]) and whole:
                    going_on.append(pair)
            unsettled = going_on


def _run_blocks(runner: Runner, pair: Pair, blocks: range, seed: str) -> bool:
    """Returns whether every operation of the blocks passed; the first that fails ends them."""
    for block in blocks:
        for slot, arm in enumerate(arrangement(seed, pair.id, block)):
            repeat = runner.finish(pair, block * BLOCK_SIZE + slot, arm, block)
            if repeat.status != "passed":
                return False
    return True
