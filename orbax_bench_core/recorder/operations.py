"""Saves and loads of this process: from calls and events of its threads to one line each.

An operation is known from three sides: the call of the job, which says the step and how long the
caller waited by a clock around it; Orbax's checkpointers and its own record of operations, which
say the path, on every host; and events, which time the phases. Of the background part the thread
that commits says when it has ended, and whether by an exception, which Orbax raises only later, in
the next call.
"""

import collections
import dataclasses
import os
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
_LEAST_WAIT_S: Final = 1e-3
_BEGUN: Final = ("id", "what", "step", "path", "t", "background")
_ENDED: Final = (*_BEGUN, "state", "call_s", "waited_s", "store", "compression", "rss", "device")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclasses.dataclass(slots=True, eq=False)
class Operation:
    """A save or a load that has begun. Moments are of `time.perf_counter`, but for `t`."""

    id: int
    what: What
    path: str
    t: float  # seconds since the epoch of its begin
    begun: float
    background: bool  # whether it goes on after the call
    overlaps: list[int]  # operations that were open when it began
    step: int | None = None
    call_s: float | None = None  # the caller waited
    waited_s: float = 0.0  # of that for the operation before
    blocked: float | None = None  # end of the part that the caller waits for
    ended: float | None = None
    state: str = "open"
    removed: bool = False  # whether old steps were removed after it
    held: int = 0  # calls that it belongs to and that have not returned
    warned: bool = False
    store: str = ""  # kind of storage, as Orbax tells it
    compression: str = ""
    events: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    rss: list[int] = dataclasses.field(default_factory=list)  # bytes before, highest, last
    device: list[int] = dataclasses.field(default_factory=list)

    @property
    def total_s(self) -> float | None:
        """Seconds from its begin to the end of its background part."""
        return None if self.ended is None else self.ended - self.begun

    def line(self) -> dict[str, Any]:
        """Returns all that is known of it, at its end."""
        known = {name: getattr(self, name) for name in _ENDED}
        return {"line": "end", **known, "total_s": self.total_s, "events": dict(self.events)}

    def is_over(self, now: float) -> bool:
        """Whether its calls have returned, and no event of it is expected any more."""
        if self.ended is None or self.held:
            return False
        late = self.what == "save" and self.state == "committed" and not self.removed
        return not late or now - self.ended > _GRACE_S


@dataclasses.dataclass(slots=True, eq=False)
class Frame:
    """A call of the job into Orbax that has not returned."""

    what: What
    step: int | None
    begun: float
    operation: Operation | None = None
    several: bool = False  # whether more than one operation began in it
    made: bool = False  # whether its operation began with it
    waited: float = 0.0  # seconds for the operation before
    warned: bool = False
    events: dict[str, list[Any]] = dataclasses.field(default_factory=dict)


class _Thread(threading.local):
    """What one thread is at."""

    def __init__(self) -> None:
        self.stack: list[Frame] = []  # calls that have not returned, the outermost first
        self.commits: Operation | None = None  # whose background part it runs
        self.own: Operation | None = None  # which it began without a call that is wrapped
        self.calls = False  # whether it saves and loads for the job


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
        self._thread = _Thread()
        self._unraised: dict[int, int] = {}  # operations by the `id` of what Orbax will raise

    # Calls of the job.

    def enter(
        self, what: What, step: int | None, path: str | None, background: bool = False
    ) -> Frame:
        """Begins a call; a call that names a path is an operation."""
        frame = Frame(what, step, time.perf_counter())
        self._thread.calls |= what != "wait"
        if not self._thread.stack and self._thread.calls:
            self.frames.append(frame)
        self._thread.stack.append(frame)
        if path is not None:
            frame.made = self._begin(what, path, background) is not None
        return frame

    def leave(self, frame: Frame, error: BaseException | None) -> None:
        """Ends a call."""
        now, stack, operation = time.perf_counter(), self._thread.stack, frame.operation
        while stack and stack.pop() is not frame:
            pass
        if not stack and frame in self.frames:
            self.frames.remove(frame)
        if frame.what == "wait":
            self._waited(frame, now - frame.begun, error)
            return
        if (operation, frame.what, error) == (None, "load", None) and frame.step is not None:
            # Emergency managers read from their local folder without a checkpointer.
            stack.append(frame)
            operation, frame.made = self._begin("load", str(frame.step), False), True
            stack.pop()
        if operation is not None:
            if not frame.several:
                operation.call_s, operation.waited_s = now - frame.begun, frame.waited
                operation.step = frame.step if operation.step is None else operation.step
            if frame.made:
                operation.blocked = now
                if error is None and not operation.background:
                    self._end(operation)
            operation.held -= 1
        if error is not None and not stack:
            self._fails(operation, frame, error)

    def _waited(self, frame: Frame, took: float, error: BaseException | None) -> None:
        """Books a wait on the calls around it, or as one that the job asked for."""
        stack, own = self._thread.stack, self._thread.own
        if any(outer.what == "wait" for outer in stack):
            return
        for outer in stack:
            # After its own blocking part, a call waits for its own commit.
            if outer.operation is None or outer.operation.blocked is None:
                outer.waited += took
        is_own = own is not None and (own.ended is None or own.ended >= frame.begun)
        if own is not None and is_own and not stack and error is not None:
            self.raises(own.what, own.path, error)
        if stack or is_own or not self._thread.calls:
            return
        if took > _LEAST_WAIT_S:
            self._add("wait", t=time.time() - took, seconds=took)
        if error is not None:
            self._fails(None, frame, error)

    def _fails(self, operation: Operation | None, frame: Frame, error: BaseException) -> None:
        """Notes an exception: that of a call, or that of a background part which surfaces in it."""
        chain = (error, error.__cause__, error.__context__)
        earlier = next((self._unraised.pop(id(e)) for e in chain if id(e) in self._unraised), None)
        if earlier is None and (frame.what == "wait" or operation is None):
            # Without the hook on the thread that commits: a save that goes on there.
            going = next((o for o in list(self.open) if o.background and o.ended is None), None)
            if going is not None:
                self._end(going, "failed")
                earlier = going.id
        if operation is not None and operation.id != earlier:
            self._end(operation, "failed")  # also one that an earlier failure has refused
        named = earlier or (None if operation is None else operation.id)
        said = {"id": named, "what": frame.what, "step": frame.step, **_said(error)}
        if earlier is None:
            self._add("failed", where="call", **said)
        else:
            self._add("surfaced", **said)

    def raises(self, what: What, path: str, error: BaseException) -> None:
        """Ends an operation whose function raised, unless a call around it says so."""
        operation = None if self._thread.stack else self._find(what, path)
        if operation is not None:
            self._fails(operation, Frame(what, operation.step, operation.begun), error)

    # Orbax's checkpointers, and its record of operations.

    def starts(self, what: What, path: str, store: str, background: bool) -> None:
        """Begins an operation that Orbax itself records, unless its call did."""
        self._thread.calls = True
        operation = self._begin(what, path, background) or self._find(what, path)
        if operation is not None:
            operation.store = store

    def blocking_ends(self, what: What, path: str) -> None:
        """Ends the part of an operation that its caller waits for."""
        operation = self._find(what, path)
        if operation is not None and operation.blocked is None:
            operation.blocked = time.perf_counter()
            if operation.call_s is None and operation.background:
                operation.call_s = operation.blocked - operation.begun

    def completes(self, what: What, path: str) -> None:
        """Ends an operation that Orbax records as complete."""
        operation = self._find(what, path)
        if operation is not None:
            if operation.call_s is None and not operation.background:
                operation.call_s = time.perf_counter() - operation.begun
            self._end(operation)

    def commit_begins(self, path: str) -> Operation | None:
        """Finds the save whose background part runs on this thread from now on."""
        self._thread.commits = self._find("save", path)
        return self._thread.commits

    def commit_ends(self, operation: Operation | None, error: object, cancelled: bool) -> None:
        """Ends the background part of a save; `error` is what Orbax keeps to raise it later."""
        self._thread.commits = None
        if operation is None:
            return
        if not isinstance(error, BaseException):
            self._end(operation, "cancelled" if cancelled else "committed")
            return
        self._unraised[id(error)] = operation.id
        self._end(operation, "failed")
        said = {"id": operation.id, "what": "save", "step": operation.step, **_said(error)}
        self._add("failed", where="background", **said)

    def _begin(self, what: What, path: str, background: bool) -> Operation | None:
        """Begins an operation on the calls of this thread; None if it has begun with them."""
        stack = self._thread.stack
        begun = now = time.perf_counter()
        within = self._within()
        if within is None or within.ended is not None:
            begun = stack[0].begun if stack else now
        elif (within.what, within.path) == (what, path):
            return None
        with self._lock:
            self.begun += 1
            others = [one.id for one in self.open if one.ended is None]
            t = time.time() - (now - begun)
            made = Operation(self.begun, what, path, t, begun, background, others)
            self.open.append(made)
        made.step = next((frame.step for frame in stack[::-1] if frame.step is not None), None)
        if stack and stack[0].operation is None:
            made.events = stack[0].events
        for frame in stack:
            if frame.operation is None:
                frame.operation = made
                made.held += 1
            else:
                frame.several = True
        if not stack and not background:
            self._thread.own = made  # its call ends with it, and may wait for it
        resident = rss()
        made.rss = [resident] * 3 if resident else []
        known = {name: getattr(made, name) for name in _BEGUN}
        thread = threading.current_thread()
        if stack and thread is not threading.main_thread():
            known["thread"] = thread.name
        self._add("begin", **known | {"path": plain(path), "overlaps": others})
        return made

    def _end(self, operation: Operation, state: str = "committed") -> None:
        """Ends an operation, unless it has ended."""
        if operation.ended is None:
            operation.ended, operation.state = time.perf_counter(), state
            self._add("ended", id=operation.id, state=state)

    def _find(self, what: What, path: str) -> Operation | None:
        """Returns the latest operation on a path that has not ended."""
        with self._lock:
            found = [o for o in self.open if (o.what, o.path) == (what, path) and o.ended is None]
        return found[-1] if found else None

    def _within(self) -> Operation | None:
        """Returns the operation of the innermost call of this thread that has one."""
        stack = self._thread.stack
        return next((frame.operation for frame in reversed(stack) if frame.operation), None)

    def _add(self, line: str, **more: Any) -> None:
        self.lines.append({"line": line, "t": time.time(), **more})
        self.wake()

    # Events of any thread.

    def event(self, name: str, value: float, labels: Mapping[str, Any]) -> None:
        """Adds an event to the operation that its thread works for."""
        stack = self._thread.stack
        operation = self._thread.commits or (self._within() if stack else self._likely())
        if name.endswith(_LEFT_OUT) or (operation is None and not stack):
            return
        events = stack[0].events if operation is None else operation.events
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
            self._end(operation)

    def _likely(self) -> Operation | None:
        """Returns the operation that a helper of Orbax most likely works for: an open one."""
        with self._lock:
            going = [one for one in self.open if one.ended is None] or self.open[-1:]
        behind = (one for one in going if one.blocked is not None)
        return next(behind, going[-1] if going else None)

    # The writer.

    def finished(self, now: float, *, last: bool = False) -> list[Operation]:
        """Takes the operations that nothing more will be said of; with `last`, all."""
        with self._lock:
            done = [one for one in self.open if last or one.is_over(now)]
            self.open = [one for one in self.open if one not in done]
        return done


def rss() -> int | None:
    """Returns the resident bytes of this process; None if the kernel does not tell them."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def _said(error: BaseException) -> dict[str, str]:
    return {"error": type(error).__name__, "message": plain(error)}
