"""Profiler traces of measured blocks."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

from orbax_bench_core.files import matching
from orbax_bench_core.measure import observers
from orbax_bench_core.measure.observers import Slot

DirectoryFor = Callable[[str], "str | None"]

_directory_for: Slot[DirectoryFor] = Slot("tracing")
# Held from the start of a trace to its end: JAX has one profiler session per process.
_profiler = threading.Lock()
_session: _Session | None = None


@contextlib.contextmanager
def tracing(directory_for: DirectoryFor) -> Iterator[None]:
    """Traces measured blocks with `jax.profiler`.

    JAX has one profiler session per process, which an outermost block starts and ends: one that no
    other is open around in its thread. A block that starts meanwhile, inside it or in another
    thread, shares the session: it is a span of its name there, and its own directory gets the same
    files. Starting and stopping the profiler is outside the clock, but the profiler itself slows
    what runs inside.

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


class Trace:
    """The trace of one block, from `start` on."""

    def __init__(self, session: _Session, operation: str, *, owned: bool) -> None:
        import jax

        self._session = session
        self._owned = owned
        self._span = jax.profiler.TraceAnnotation(operation)
        self._span.__enter__()

    def stop(self) -> None:
        """Ends the block's span and, if the block started the session, the session too."""
        observers.attempt("end a span", lambda: self._span.__exit__(None, None, None), None)
        if self._owned:
            self._session.end()


def start(operation: str, *, outermost: bool) -> Trace | None:
    """Starts a trace of the operation if one is wanted and possible; it must be stopped."""
    directory_for = _directory_for.get()
    if directory_for is None:
        return None
    directory = observers.attempt(
        "choose a trace directory", lambda: directory_for(operation), None
    )
    if directory is None:
        return None
    if outermost and _profiler.acquire(blocking=False):
        return _own(operation, directory)
    session = _session
    if session is None:
        return None
    session.shared.append(directory)
    return observers.attempt("begin a span", lambda: Trace(session, operation, owned=False), None)


def _own(operation: str, directory: str) -> Trace | None:
    """Starts a session of the profiler, which is this block's while it holds `_profiler`."""
    global _session  # noqa: PLW0603 - the process has one profiler
    session = observers.attempt("start a profiler trace", lambda: _Session.begin(directory), None)
    if session is None:
        _profiler.release()
        return None
    _session = session
    trace = observers.attempt("begin a span", lambda: Trace(session, operation, owned=True), None)
    if trace is None:
        session.end()
    return trace


class _Session:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.shared: list[str] = []  # the directories of the blocks that share it
        self._before = _files(directory)

    @classmethod
    def begin(cls, directory: str) -> _Session:
        import jax

        session = cls(directory)
        jax.profiler.start_trace(directory)
        return session

    def end(self) -> None:
        global _session  # noqa: PLW0603 - the process has one profiler
        try:
            observers.attempt("stop the profiler trace", _end, None)
            _session = None
            if self.shared:
                observers.attempt("share a profiler trace", self._share, None)
        finally:
            _session = None
            _profiler.release()

    def _share(self) -> None:
        made = _files(self.directory) - self._before
        for directory in {*self.shared} - {self.directory}:
            for file in made:
                _link(f"{self.directory}/{file}", f"{directory}/{file}")


def _files(directory: str) -> set[str]:
    from etils import epath

    root = epath.Path(directory)
    if not root.exists():
        return set()
    return {str(path.relative_to(root)) for path in matching(root, "plugins/profile/*/*")}


def _link(file: str, to: str) -> None:
    """Has a file stand in a second place, without a second copy where the file system can."""
    from etils import epath

    target = epath.Path(to)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, to)
    except FileExistsError:
        pass
    except OSError:
        epath.Path(file).copy(target, overwrite=True)


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
