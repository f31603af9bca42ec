"""Orders of repeats: all points of a schedule, or each point until it is enough."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

from orbax_bench_core.execute.common_failure import CommonFailureCheck
from orbax_bench_core.execute.runner import runner_of
from orbax_bench_core.execute.schedule import schedule
from orbax_bench_core.execute.session import Session
from orbax_bench_core.records import Repeat
from orbax_bench_core.sweep import SweepPoint


def run_points(session: Session, meanwhile: Callable[[], object] | None = None) -> None:
    """Runs every repeat of the points of a session that has no finished record yet."""
    info = session.info
    shared = CommonFailureCheck(session.plain) if session.settings.give_up else None
    with runner_of(session, meanwhile) as runner:
        for point, index in schedule(session.plain, info.num_repeats, info.execution):
            repeat = runner.finish(point, index)
            if shared is not None:
                shared.look(point, repeat)


def run_until(session: Session, ended: Callable[[SweepPoint, Repeat], bool]) -> int:
    """Runs repeats of each point, one point after the other, until they are enough.

    Every point has workers of its own, so that what one leaves in a process does not count for the
    next.
    """
    made = []
    for point in session.plain:
        with runner_of(dataclasses.replace(session, entries=(point,))) as runner:
            for index in itertools.count():
                if ended(point, runner.finish(point, index)):
                    made.append(index + 1)
                    break
    return min(made)
