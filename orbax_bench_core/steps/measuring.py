"""Measuring step: the points of a session, alone on their machine."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from orbax_bench_core.execute import Session, refuse_several_hosts, run_points
from orbax_bench_core.steps.space import check_room


@contextlib.contextmanager
def measuring(session: Session, *, lock: bool) -> Iterator[None]:
    """Holds the lease of what the session measures, and enters its watcher.

    With `lock`, it first waits until nothing else of ours measures on its hosts.
    """
    if not session.settings.placed:
        refuse_several_hosts("what was started here")
    check_room(session)
    turn = session.alone() if lock else contextlib.nullcontext()
    with session.owned(), turn, session.watch:
        yield


def measure_points(
    session: Session,
    *,
    limits: bool = True,
    lock: bool = True,
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Runs every repeat that has no finished record yet."""
    with measuring(session, lock=lock):
        run_points(session, meanwhile)
        if limits:
            from orbax_bench_core.limits import ensure_limits

            settings = session.settings
            ensure_limits(session.directory, session.say, settings.host, again=settings.new_limits)
