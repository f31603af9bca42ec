"""Saves and loads of this process: from calls and events of its threads to one line each.

An operation is known from three sides: the call of the job, which says the step and how long the
caller waited by a clock around it; Orbax's checkpointers and its own record of operations, which
say the path, on every host; and events, which time the phases. Of the background part the thread
that commits says when it has ended, and whether by an exception, which Orbax raises only later, in
the next call.
"""

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from orbax_bench_core.recorder.lines import plain

What = Literal["save", "load", "wait"]

_BACKGROUND_ENDS: Final = "/jax/orbax/write/background_duration_secs"
_REMOVED: Final = "/jax/checkpoint/write/remove_steps_duration_secs"
_LEFT_OUT: Final = ("_time", "/sharded_array_gb", "/replicated_array_gb")
"""Ends of events that say a moment, or come once per leaf."""
_GRACE_S: Final = 2.0
"""Seconds after the end of a save in which the removal of old steps still belongs to it."""
_MOST_LINES: Final = 20_000


@dataclasses.dataclass(slots=True, eq=False)
class Operation:
    """A save or a load that has begun. Times are of `time.perf_counter`, unless named otherwise."""

    id: int
    what: str  # "save" or "load"
    path: str
    epoch: float  # seconds since the epoch of its begin
    begun: float
    step: int | None = None
    background: bool = False  # whether it goes on after the call
    overlaps: tuple[int, ...] = ()  # operations that were open when it began
    call_s: float | None = None
    waited_s: float = 0.0
    blocked: float | None = None  # end of the part that the caller waits for
    ended: float | None = None
    state: str = "open"
    removed: bool = False  # whether old steps were removed after it
    held: int = 0  # calls that it belongs to and that have not returned
    warned: bool = False
    store: str = ""  # kind of storage, as Orbax tells it
    compression: str = ""
    events: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    rss: list[int] = dataclasses.field(default_factory=list)  # before, highest, last
    device: list[int] = dataclasses.field(default_factory=list)

    def line(self) -> dict[str, Any]:
        """Returns what is known at its end."""
        total = None if self.ended is None else self.ended - self.begun
        return {
            "line": "end",
            "id": self.id,
            "what": self.what,
            "step": self.step,
            "path": plain(self.path),
            "t": self.epoch,
            "state": self.state,
            "background": self.background,
            "call_s": _rounded(self.call_s),
            "waited_s": _rounded(self.waited_s),
            "total_s": _rounded(total),
            "rss": self.rss,
            "device": self.device,
            "store": self.store,
            "compression": self.compression,
            "events": dict(self.events),
        }


@dataclasses.dataclass(slots=True, eq=False)
class Frame:
    """A call of the job into Orbax that has not returned."""

    what: What
    step: int | None
    begun: float
    background: bool = False  # whether its operation goes on after it
    operation: Operation | None = None
    several: bool = False  # whether more than one operation began in it
    made: bool = False  # whether its operation began with it
    waited: float = 0.0  # seconds for the operation before
    warned: bool = False
    events: dict[str, list[Any]] = dataclasses.field(default_factory=dict)


class Tracker:
    """Operations of this process. Hooks call it inside the job, the writer from its own thread."""

    def __init__(self) -> None:
        """Knows no operation."""
        self.lines: collections.deque[dict[str, Any]] = collections.deque(maxlen=_MOST_LINES)
        self.open: list[Operation] = []
        self.frames: list[Frame] = []  # outermost calls, of all threads
        self.begun = 0
        self.wake: Callable[[], object] = bool  # tells the writer that there is something to write
        self._lock = threading.Lock()
        self._threads = threading.local()
        self._callers: set[int] = set()  # threads that save and load for the job
        self._unraised: dict[int, int] = {}  # operations by the `id` of what Orbax will raise

    # Calls of the job.

    def enter(
        self, what: What, step: int | None, path: str | None, background: bool = False
    ) -> Frame:
        """Begins a call; a call that names a path is an operation."""
        stack = self._stack()
        frame = Frame(what, step, time.perf_counter(), background)
        if what != "wait":
            self._callers.add(threading.get_ident())
        if not stack and threading.get_ident() in self._callers:
            self.frames.append(frame)
        stack.append(frame)
        if path is not None and what != "wait":
            frame.made = self._begin(what, path, background) is not None
        return frame

    def leave(self, frame: Frame, error: BaseException | None) -> None:
        """Ends a call."""
        now = time.perf_counter()
        stack = self._stack()
        while stack and stack.pop() is not frame:
            pass
        if not stack and frame in self.frames:
            self.frames.remove(frame)
        took = now - frame.begun
        if frame.what == "wait":
            self._waited(stack, frame, took, error)
            return
        operation = frame.operation
        if operation is not None:
            if not frame.several:
                operation.call_s, operation.waited_s = took, frame.waited
                if operation.step is None:
                    operation.step = frame.step
            if frame.made:
                operation.blocked = now
                if error is None and not operation.background:
                    self._end(operation, now)
            operation.held -= 1
        if error is not None and not stack:
            self._fails(operation, frame, error)

    def _waited(
        self, stack: list[Frame], frame: Frame, took: float, error: BaseException | None
    ) -> None:
        """Books a wait on the calls around it, or as one that the job asked for."""
        if any(outer.what == "wait" for outer in stack):
            return
        for outer in stack:
            # After its own blocking part, a call waits for its own commit.
            if outer.operation is None or outer.operation.blocked is None:
                outer.waited += took
        own: Operation | None = getattr(self._threads, "own", None)
        is_own = own is not None and (own.ended is None or own.ended >= frame.begun)
        if stack or is_own or threading.get_ident() not in self._callers:
            return
        if took > 1e-3:
            self.lines.append({"line": "wait", "t": time.time() - took, "s": _rounded(took)})
        if error is not None:
            self._fails(None, frame, error)

    def _fails(self, operation: Operation | None, frame: Frame, error: BaseException) -> None:
        """Notes an exception: that of a call, or that of a background part which surfaces in it."""
        now = time.perf_counter()
        line = {"t": time.time(), "what": frame.what, "step": frame.step, **_said(error)}
        chain = (error, error.__cause__, error.__context__)
        earlier = next((self._unraised.pop(id(e)) for e in chain if id(e) in self._unraised), None)
        if earlier is None and (frame.what == "wait" or operation is None):
            # Without the hook on the thread that commits: a save that goes on there.
            with self._lock:
                going = [one for one in self.open if one.background and one.ended is None]
            if going:
                self._end(going[0], now, "failed")
                earlier = going[0].id
        if earlier is not None:
            self.lines.append({"line": "surfaced", "id": earlier, **line})
            return
        if operation is not None:
            self._end(operation, now, "failed")
        named = None if operation is None else operation.id
        self.lines.append({"line": "failed", "id": named, "where": "call", **line})

    def _end(self, operation: Operation, now: float, state: str = "committed") -> None:
        """Ends an operation, unless it has ended."""
        if operation.ended is None:
            operation.ended, operation.state = now, state
            self.lines.append(
                {"line": "ended", "id": operation.id, "t": time.time(), "state": state}
            )
            self.wake()

    # Orbax's checkpointers, and its record of operations.

    def starts(self, what: str, path: str, store: str, background: bool) -> None:
        """Begins an operation that Orbax itself records, unless its call did."""
        self._callers.add(threading.get_ident())
        operation = self._begin(what, path, background) or self._find(what, path)
        if operation is not None:
            operation.store = store

    def blocking_ends(self, what: str, path: str) -> None:
        """Ends the part of an operation that its caller waits for."""
        operation = self._find(what, path)
        if operation is not None and operation.blocked is None:
            operation.blocked = time.perf_counter()
            if operation.call_s is None and operation.background:
                operation.call_s = operation.blocked - operation.begun

    def completes(self, what: str, path: str) -> None:
        """Ends an operation that Orbax records as complete."""
        operation = self._find(what, path)
        if operation is None:
            return
        now = time.perf_counter()
        if operation.call_s is None and not operation.background:
            operation.call_s = now - operation.begun
        self._end(operation, now)

    def commit_begins(self, path: str) -> Operation | None:
        """Finds the save whose background part runs on this thread from now on."""
        operation = self._find("save", path)
        self._threads.operation = operation
        return operation

    def commit_ends(self, operation: Operation | None, error: object, cancelled: bool) -> None:
        """Ends the background part of a save; `error` is what Orbax keeps to raise it later."""
        self._threads.operation = None
        if operation is None:
            return
        now = time.perf_counter()
        if isinstance(error, BaseException):
            self._unraised[id(error)] = operation.id
            self._end(operation, now, "failed")
            line = {"line": "failed", "id": operation.id, "where": "background", "what": "save"}
            self.lines.append(line | {"t": time.time(), "step": operation.step} | _said(error))
        else:
            self._end(operation, now, "cancelled" if cancelled else "committed")

    def _begin(self, what: str, path: str, background: bool) -> Operation | None:
        """Begins an operation on the calls of this thread; None if it has begun with them."""
        stack = self._stack()
        now, epoch = time.perf_counter(), time.time()
        within = _operation_of(stack)
        if within is not None and within.ended is None:
            if (within.what, within.path) == (what, path):
                return None
            begun = now  # the second one of a call
        else:
            begun = min([frame.begun for frame in stack], default=now)
        with self._lock:
            self.begun += 1
            others = tuple(one.id for one in self.open if one.ended is None)
            made = Operation(self.begun, what, path, epoch - (now - begun), begun)
            made.background, made.overlaps = background, others
            made.step = next((frame.step for frame in stack[::-1] if frame.step is not None), None)
            self.open.append(made)
        if stack and stack[0].operation is None:
            made.events = stack[0].events
        for frame in stack:
            if frame.operation is None:
                frame.operation = made
                made.held += 1
            else:
                frame.several = True
        if not stack and not background:
            self._threads.own = made  # its call ends with it, and may wait for it
        if (resident := rss()) is not None:
            made.rss = [resident, resident, resident]
        self.lines.append(
            {
                "line": "begin",
                "id": made.id,
                "what": what,
                "step": made.step,
                "path": plain(path),
                "t": made.epoch,
                "background": background,
                "overlaps": list(others),
            }
        )
        self.wake()
        return made

    def _find(self, what: str, path: str) -> Operation | None:
        """Returns the latest operation on a path that has not ended."""
        with self._lock:
            found = [o for o in self.open if (o.what, o.path) == (what, path) and o.ended is None]
        return found[-1] if found else None

    def _stack(self) -> list[Frame]:
        """Returns the calls of this thread, the outermost first."""
        try:
            return self._threads.stack  # type: ignore[no-any-return]
        except AttributeError:
            stack: list[Frame] = []
            self._threads.stack = stack
            return stack

    # Events of any thread.

    def event(self, name: str, value: float, labels: Mapping[str, Any]) -> None:
        """Adds an event to the operation that its thread works for."""
        if name.endswith(_LEFT_OUT):
            return
        operation: Operation | None = getattr(self._threads, "operation", None)
        stack = self._stack()
        if operation is None:
            operation = _operation_of(stack) if stack else self._likely()
        if operation is not None:
            events = operation.events
        elif stack:
            events = stack[0].events
        else:
            line = {"line": "event", "t": time.time(), "event": name, "value": value}
            self.lines.append(line)
            return
        seen = events.get(name)
        if seen is None:
            events[name] = [1, value, value, threading.current_thread().name]
        else:
            seen[0] += 1
            seen[1] += value
            seen[2] = value
        if operation is None:
            return
        if "compression_algorithm" in labels:
            operation.compression = str(labels["compression_algorithm"])
        if name == _REMOVED:
            operation.removed = True
        elif name == _BACKGROUND_ENDS and operation.blocked is not None:
            self._end(operation, time.perf_counter())

    def _likely(self) -> Operation | None:
        """Returns the operation that a helper of Orbax most likely works for: an open one."""
        with self._lock:
            going = [one for one in self.open if one.ended is None]
            if not going:
                return self.open[-1] if self.open else None
        return next((one for one in going if one.blocked is not None), going[-1])

    # The writer.

    def finished(self, now: float, *, last: bool = False) -> list[Operation]:
        """Takes the operations that nothing more will be said of; with `last`, all."""
        with self._lock:
            done = [one for one in self.open if last or _is_over(one, now)]
            for one in done:
                self.open.remove(one)
        return done


def _operation_of(stack: list[Frame]) -> Operation | None:
    return next((frame.operation for frame in reversed(stack) if frame.operation), None)


def _is_over(operation: Operation, now: float) -> bool:
    """Whether its calls have returned, and no event of it is expected any more."""
    if operation.ended is None or operation.held:
        return False
    late = operation.what == "save" and operation.state == "committed" and not operation.removed
    return not late or now - operation.ended > _GRACE_S


def rss() -> int | None:
    """Returns the resident bytes of this process; None where the kernel does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def _said(error: BaseException) -> dict[str, str]:
    return {"error": type(error).__name__, "message": plain(error)}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _page() -> int:
    import os

    try:
        return os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4096


_PAGE: Final = _page()
