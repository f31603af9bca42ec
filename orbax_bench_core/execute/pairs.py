"""Blocks of both arms of each pair, look by look, until each pair is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orbax_bench_core.execute.common_failure import ENOUGH, CommonFailureCheck
from orbax_bench_core.execute.runner import Runner, runner_of
from orbax_bench_core.execute.session import Session
from orbax_bench_core.records import Repeat, RunInfo
from orbax_bench_core.sweep import Pair, sides

NextLook = Callable[[Pair, Sequence[float]], int | None]
"""Judges a pair after each look: the operations per arm to go on to; None when it is settled.

It is given the pair and the seconds that each start of workers took that had to take turns.
"""


def run_pairs(session: Session, next_look: NextLook) -> None:
    """Runs blocks of both arms of every pair of a session, look by look, until each is settled.

    All pairs are brought to one look before any goes on to the next, so that each pair's blocks are
    spread over the run and every pair has an early answer. `next_look` is asked after each look,
    also when there is nothing to compare. A failure is data and ends nothing, unless an arm cannot
    be measured or no attempt of either arm passes in the first block.
    """
    info = session.info
    designs = {pair.id: info.design(pair) for pair in session.pairs}
    first = {id_: design.looks(info.gate)[0] for id_, design in designs.items()}
    unsettled = [(pair, range(designs[pair.id].blocks(first[pair.id]))) for pair in session.pairs]
    shared = _shared_failure(session)
    with runner_of(session) as runner:
        while unsettled:
            going_on = []
            for pair, blocks in unsettled:
                started = len(runner.starts)
                comparable = _run_blocks(runner, info, pair, blocks, shared)
                look = next_look(pair, runner.starts[started:])
                coming = range(blocks.stop, 0 if look is None else designs[pair.id].blocks(look))
                if comparable and coming:
                    going_on.append((pair, coming))
            unsettled = going_on


def _shared_failure(session: Session) -> CommonFailureCheck | None:
    """Returns what watches for a failure that all pairs share; None for a few of them.

    A pair of which neither arm can be measured ends by itself, and its verdict says why.
    """
    if not session.settings.give_up or len(session.pairs) <= ENOUGH:
        return None
    arms = [point for pair in session.pairs for point in sides(pair).values()]
    return CommonFailureCheck(arms, what="arm")


def _run_blocks(
    runner: Runner, info: RunInfo, pair: Pair, blocks: range, shared: CommonFailureCheck | None
) -> bool:
    """Returns whether there is something to compare; the first sign of the contrary ends them."""
    design = info.design(pair)
    run = _lives if design.lives else _operations
    for block in blocks:
        repeats = []
        for repeat in run(runner, info, pair, block):
            repeats.append(repeat)
            if shared is not None:
                shared.look(repeat.series.point, repeat)
            if repeat.impossible:
                return False
        if not block and all(repeat.first_failed for repeat in repeats):
            return False
    return True


def _operations(runner: Runner, info: RunInfo, pair: Pair, block: int) -> Iterator[Repeat]:
    """Measures a block whose operations share the workers of their arms."""
    design = info.design(pair)
    for slot, arm in enumerate(info.order(pair, block)):
        yield runner.finish(pair, design.repeat(block, slot), arm, block)


def _lives(runner: Runner, info: RunInfo, pair: Pair, block: int) -> Iterator[Repeat]:
    """Measures a block in which each slot has a worker of its own.

    What an interruption left of a life is measured by a new worker, with warm-ups of its own: the
    records of one life then name two workers, and the verdict counts such lives.
    """
    design, arms = info.design(pair), info.order(pair, block)
    missing = [
        slot
        for slot, operation in design.order(alive=False)
        if runner.missing(pair, design.repeat(block, slot, operation), arms[slot])
    ]
    with runner.lives(pair, {slot: arms[slot] for slot in missing}) as alive:
        for slot, operation in design.order(alive=alive):
            repeat = design.repeat(block, slot, operation)
            yield runner.finish(pair, repeat, arms[slot], block, slot)
            if not alive and operation == design.operations_per_life - 1:
                runner.end_life(slot)
