"""Runs both arms of each point in blocks, until a verdict is reached."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.execute.runner import Runner, RunSettings, Watcher, runner_of
from orbax_bench_core.records import RunDirectory, RunInfo
from orbax_bench_core.sweep import BLOCK_SIZE, Pair, arrangement

Settled = Callable[[Pair, Sequence[float]], bool]
"""Judges a point after each look: whether it needs no more blocks.

It is given the point and the seconds that each start of workers took that had to take turns.
"""


def run_pairs(
    run: RunDirectory,
    info: RunInfo,
    loaded: LoadedSuite,
    points: Sequence[Pair],
    settings: RunSettings,
    watch: Watcher,
    say: Callable[[str], None],
    settled: Settled,
) -> None:
    """Runs blocks of both arms of every point, look by look, until each is settled.

    All points are brought to one look before any goes on to the next, so that each point's blocks
    are spread over the run and every point has an early answer.

    Args:
        run: The run directory.
        info: What its `run.json` says.
        loaded: The suite, with arms.
        points: Its points, each a pair.
        settings: How.
        watch: Told of every repeat.
        say: Takes a line for people.
        settled: Judges a point after each look, also when an arm has failed.

    Raises:
        CannotRecord: A record could not be written.
    """
    looks = [0, *(look * 2 // BLOCK_SIZE for look in info.gate.looks)]
    unsettled = list(points)
    with runner_of(run, info, loaded, points, settings, watch, say) as runner:
        for first, end in itertools.pairwise(looks):
            going_on = []
            for point in unsettled:
                started = len(runner.starts)
                whole = _run_blocks(runner, point, range(first, end), info.run_id)
                if not settled(point, runner.starts[started:]) and whole:
                    going_on.append(point)
            unsettled = going_on


def _run_blocks(runner: Runner, point: Pair, blocks: range, run_id: str) -> bool:
    """Returns whether every operation of the blocks passed; the first that fails ends them."""
    for block in blocks:
        for slot, arm in enumerate(arrangement(run_id, point.id, block)):
            repeat = runner.finish(point, block * BLOCK_SIZE + slot, arm, block)
            if repeat.status != "passed":
                return False
    return True
