"""Schedule of a session: orders of repeats, and pairs look by look."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator, Sequence

from orbax_bench_core.config import Arm, ExecutionConfig
from orbax_bench_core.execute.common_failure import ENOUGH, CommonFailureCheck
from orbax_bench_core.execute.runner import Runner, runner_of
from orbax_bench_core.execute.session import Session
from orbax_bench_core.records import Repeat, RunInfo
from orbax_bench_core.sweep import Pair, PairDesign, Placement, SweepPoint, placement, sides


def schedule(
    points: Sequence[SweepPoint], num_repeats: int, execution: ExecutionConfig
) -> list[tuple[SweepPoint, int]]:
    """Returns every repeat of every point in the order in which to run them.

    Args:
        points: The points.
        num_repeats: Repeats of each.
        execution: The order, `sequential` or `interleaved`, and its seed.
    """
    # Interleaved rounds spread drift of the machine evenly over the points: a machine that slows
    # down during a sweep would otherwise look like the fault of the points that come last.
    if execution.order == "sequential":
        return [(point, repeat) for point in points for repeat in range(num_repeats)]
    return [
        (point, repeat)
        for repeat in range(num_repeats)
        for point in _shuffle(points, random.Random(f"{execution.seed}:{repeat}"))
    ]


def _shuffle(points: Sequence[SweepPoint], generator: random.Random) -> list[SweepPoint]:
    """Shuffles groups, and points within a group, so that each worker is visited once a round."""
    groups: dict[Placement, list[SweepPoint]] = {}
    for point in points:
        groups.setdefault(placement(point), []).append(point)
    order = list(groups)
    generator.shuffle(order)
    shuffled = []
    for key in order:
        generator.shuffle(groups[key])
        shuffled += groups[key]
    return shuffled


def run_points(session: Session, meanwhile: Callable[[], object] | None = None) -> None:
    """Runs every repeat of the points of a session that has no finished record yet.

    Args:
        session: What to measure, and where.
        meanwhile: Called once, while the first workers start.

    Raises:
        CommonFailure: The first points failed for one reason, and the session gives up on that.
    """
    info = session.info
    shared = CommonFailureCheck(session.plain) if session.settings.give_up else None
    works = [point.work for point in info.expansion.plain]
    spread = info.execution.order == "interleaved" and len(set(works)) < len(works)
    with runner_of(session, meanwhile) as runner:
        process, last = 0, info.execution.process_of(info.num_repeats - 1)
        cannot_pass: set[str] = set()
        for point, index in schedule(session.plain, info.num_repeats, info.execution):
            # What an option does differs by chance from process to process: where one process
            # measured all rounds, points that were equal had a winner in 65 % of sweeps.
            if spread and info.execution.process_of(index) != process:
                process = info.execution.process_of(index)
                runner.pool.end(session.plain, coming=last - process + 1)
            if point.id in cannot_pass:
                continue
            repeat = runner.finish(point, index)
            if shared is not None:
                shared.look(point, repeat)
            if repeat.certain and info.num_repeats > 1:
                cannot_pass.add(point.id)
                session.say(
                    f"{point.name} would fail again in the same way: its other repeats are left out"
                )


def run_until(session: Session, ended: Callable[[SweepPoint, Repeat], bool]) -> int:
    """Runs repeats of each point, one point after the other, until they are enough.

    Args:
        session: What to measure, and where.
        ended: Says after each repeat whether its point has enough.

    Returns:
        The repeats of the point that has fewest.
    """
    # Every point has workers of its own, so that what one leaves in a process does not count for
    # the next.
    made = []
    for point in session.plain:
        with runner_of(dataclasses.replace(session, entries=(point,))) as runner:
            for index in itertools.count():
                if ended(point, runner.finish(point, index)):
                    made.append(index + 1)
                    break
    return min(made)


NextLook = Callable[[Pair, Sequence[float]], tuple[PairDesign, int] | None]
"""Judges a pair after each look: its design from there on, and the operations per arm to go on to;
None when it is settled.

It is given the pair and the seconds that each start of workers took that had to take turns.
"""


def run_pairs(session: Session, next_look: NextLook) -> None:
    """Runs blocks of both arms of every pair of a session, look by look, until each is settled.

    All pairs are brought to one look before any goes on to the next, so that each pair's blocks are
    spread over the run and every pair has an early answer. Pairs whose arms share workers share
    each with the other pairs, so that all of them cost no more starts than one.

    `next_look` is asked after each look, also when there is nothing to compare. A failure is data
    and ends nothing, unless an arm cannot be measured or no attempt of either arm passes in the
    first block.

    Args:
        session: What to measure, and where.
        next_look: Judges a pair after each look.

    Raises:
        CommonFailure: The first arms failed for one reason, and the session gives up on that.
    """
    info = session.info
    designs = dict(info.designs)
    first = {pair.id: designs[pair.id].looks(info.gate)[0] for pair in session.pairs}
    unsettled = [(pair, range(designs[pair.id].blocks(first[pair.id]))) for pair in session.pairs]
    shared = _watch_shared_failure(session)
    with runner_of(session) as runner:
        while unsettled:
            going_on = []
            waited: dict[str, list[float]] = {pair.id: [] for pair, _ in unsettled}
            last = {pair.id: blocks.stop for pair, blocks in unsettled}
            turns = list(_turns(unsettled, info.gate.blocks_per_process))
            for number, turn in enumerate(turns):
                begin = [pair for pair, at in turn if designs[pair.id].begins_process(at.start)]
                # Lives need the room that workers of later blocks would take.
                followers = len(turns) - number if len(begin) == len(turn) else 1
                runner.pool.end([pair.baseline for pair in begin], followers)
                for pair, blocks in turn:
                    if pair.id not in waited:
                        continue  # nothing was comparable in an earlier turn
                    started = len(runner.pool.starts)
                    design = designs[pair.id]
                    comparable = _run_blocks(runner, info, pair, design, blocks, shared)
                    waited[pair.id] += runner.pool.starts[started:]
                    if comparable and blocks.stop < last[pair.id]:
                        continue
                    going = next_look(pair, waited.pop(pair.id))
                    if comparable and going is not None:
                        designs[pair.id], look = going
                        start = max(blocks.stop, designs[pair.id].after)
                        if coming := range(start, designs[pair.id].blocks(look)):
                            going_on.append((pair, coming))
            unsettled = going_on


def _turns(
    unsettled: Sequence[tuple[Pair, range]], per_process: int
) -> Iterator[list[tuple[Pair, range]]]:
    """Returns which blocks of each pair one worker process measures, a process after the other."""
    left = list(unsettled)
    while left:
        turn = [(pair, blocks, per_process - blocks.start % per_process) for pair, blocks in left]
        yield [(pair, blocks[:count]) for pair, blocks, count in turn]
        left = [(pair, blocks[count:]) for pair, blocks, count in turn if blocks[count:]]


def _watch_shared_failure(session: Session) -> CommonFailureCheck | None:
    """Returns the watch for a failure that all pairs share, or None for a few pairs."""
    # A pair of which neither arm can be measured ends by itself, and its verdict says why.
    if not session.settings.give_up or len(session.pairs) <= ENOUGH:
        return None
    arms = [point for pair in session.pairs for point in sides(pair).values()]
    return CommonFailureCheck(arms, what="arm")


def _run_blocks(
    runner: Runner,
    info: RunInfo,
    pair: Pair,
    design: PairDesign,
    blocks: range,
    shared: CommonFailureCheck | None,
) -> bool:
    """Returns whether there is something to compare; the first sign of the contrary ends them."""
    for block in blocks:
        repeats = []
        for repeat in _measure_block(runner, pair, design, block, info.order(pair, block)):
            repeats.append(repeat)
            if shared is not None:
                shared.look(repeat.series.point, repeat)
            if repeat.impossible:
                return False
        if not block and all(repeat.first_failed for repeat in repeats):
            return False
    return True


def _measure_block(
    runner: Runner, pair: Pair, design: PairDesign, block: int, arms: Sequence[Arm]
) -> Iterator[Repeat]:
    """Measures a block, whose operations share the workers of their arms or have one per slot."""
    # What an interruption left of a life is measured by a new worker, with warm-ups of its own: the
    # records of one life then name two workers, and the verdict counts such lives.
    if not design.lives:
        for slot, arm in enumerate(arms):
            yield runner.finish(pair, design.repeat(block, slot), arm, block)
        return
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
                runner.pool.end_life(slot)
