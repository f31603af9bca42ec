"""Profiler traces of measured blocks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from orbax_bench_core.measure import observers
from orbax_bench_core.measure.observers import Slot

DirectoryFor = Callable[[str], "str | None"]

_directory_for: Slot[DirectoryFor] = Slot("tracing")
# Held from the start of a trace to its end: JAX has one profiler session per process.
_profiler = threading.Lock()


@contextlib.contextmanager
def tracing(directory_for: DirectoryFor) -> Iterator[None]:
    """Traces the outermost measured blocks with `jax.profiler`.

    A block is outermost when no other is open in its thread. One trace runs at a time: a block that
    starts while another is traced runs untraced. Starting and stopping the profiler is outside
    the clock, but the profiler itself slows what runs inside.

    Args:
        directory_for: Takes the name of the operation and gives the directory of its trace, or
            None for no trace.

    Yields:
        Nothing.

    Raises:
        RuntimeError: Another `tracing` is active in this process.
    """
    with _directory_for.holding(directory_for):
        yield


def start(operation: str) -> bool:
    """Starts a trace of the operation if one is wanted and possible.

    Returns:
        Whether a trace started; then `stop` must follow.
    """
    directory_for = _directory_for.get()
    if directory_for is None:
        return False
    directory = observers.attempt(
        "choose a trace directory", lambda: directory_for(operation), None
    )
    if directory is None or not _profiler.acquire(blocking=False):
        return False
    started = False
    try:
        started = observers.attempt("start a profiler trace", lambda: _begin(directory), False)
    finally:
        if not started:
            _profiler.release()
    return started


def stop() -> None:
    """Stops the trace that `start` started and writes it."""
    try:
        observers.attempt("stop the profiler trace", _end, None)
    finally:
        _profiler.release()


def _begin(directory: str) -> bool:
    import jax

    jax.profiler.start_trace(directory)
    return True


def _end() -> None:
    import jax
    from jax._src import profiler

    stop_trace: Callable[[], None] = jax.profiler.stop_trace
    try:
        stop_trace()
    except Exception:
        # JAX forgets a session only once it is written: without this, one full disk would make it
        # refuse every later trace as "already started".
        profiler._profile_state.reset()  # noqa: SLF001  # there is no public way
        raise
