"""Where the recorder listens: events of JAX, and methods of Orbax that are wrapped.

Each hook is optional. Names of Orbax that a release does not have are left out, and the life of a
recording says which. A wrapped method calls the original first and last, whatever happens here.
"""

import functools
import os
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from orbax_bench_core.recorder.imports import ImportHook
from orbax_bench_core.recorder.operations import Frame, Tracker, What

if TYPE_CHECKING:
    from orbax_bench_core.recorder.recorder import Guard

_PREFIXES: Final = ("/jax/orbax/", "/jax/checkpoint/", "/orbax/")
"""Beginnings of the events of Orbax; emergency managers leave out `/jax`."""

Names = Literal["step", "path", "none"]


class _Call(NamedTuple):
    """A method of Orbax that a job calls."""

    module: str
    owner: str
    method: str
    what: What
    first: Names  # meaning of its first argument
    background: bool = False  # whether the operation goes on after it


_V0: Final = "orbax.checkpoint._src.checkpointers"
_V1: Final = "orbax.checkpoint.experimental.v1._src"
_EMERGENCY: Final = "orbax.checkpoint.experimental.emergency"
_MANAGERS: Final = (
    ("orbax.checkpoint.checkpoint_manager", "CheckpointManager"),
    (f"{_EMERGENCY}.checkpoint_manager", "CheckpointManager"),
    (f"{_EMERGENCY}.replicator_checkpoint_manager", "ReplicatorCheckpointManager"),
    (
        f"{_EMERGENCY}.multi_tier_checkpointing.replicator_checkpoint_manager",
        "ReplicatorCheckpointManager",
    ),
    (f"{_EMERGENCY}.p2p.checkpoint_manager", "CheckpointManager"),
)
_SAVES: Final = ("save", "save_async", "save_checkpointables", "save_checkpointables_async")
_LOADS: Final = ("load", "load_async", "load_checkpointables", "load_checkpointables_async")

_CALLS: Final = (
    *(_Call(*manager, "save", "save", "step") for manager in _MANAGERS),
    *(_Call(*manager, "restore", "load", "step") for manager in _MANAGERS),
    *(_Call(*manager, "wait_until_finished", "wait", "none") for manager in _MANAGERS),
    _Call(f"{_V0}.checkpointer", "Checkpointer", "save", "save", "path"),
    _Call(f"{_V0}.checkpointer", "Checkpointer", "restore", "load", "path"),
    _Call(f"{_V0}.async_checkpointer", "AsyncCheckpointer", "save", "save", "path", True),
    _Call(f"{_V0}.async_checkpointer", "AsyncCheckpointer", "restore", "load", "path"),
    _Call(f"{_V0}.async_checkpointer", "AsyncCheckpointer", "wait_until_finished", "wait", "none"),
    *(_Call(f"{_V1}.training.checkpointer", "Checkpointer", m, "save", "step") for m in _SAVES),
    *(_Call(f"{_V1}.training.checkpointer", "Checkpointer", m, "load", "step") for m in _LOADS),
    _Call(
        f"{_V1}.synchronization.thread_utils", "BackgroundThreadRunner", "result", "wait", "none"
    ),
)
_RECORDER: Final = "orbax.checkpoint._src.logging.event_tracking"
_COMMITS: Final = f"{_V0}.async_checkpointer"


class Hooks:
    """All hooks of a recorder."""

    def __init__(
        self, tracker: Tracker, tick: Callable[[object, int], None], guard: "Guard"
    ) -> None:
        """Sets no hook yet; `tick` takes the number of a step and the rank of its source."""
        self._tracker, self._tick, self._guard = tracker, tick, guard
        self._patched: list[tuple[Any, str, Any, Any]] = []
        self._listeners: list[tuple[Callable[[Any], None], Any]] = []
        self.lacking: list[str] = []  # names that this release of Orbax or JAX does not have
        modules = {call.module for call in _CALLS} | {_RECORDER, _COMMITS}
        wanted: dict[str, Callable[[ModuleType], object]] = dict.fromkeys(modules, self._wrap_calls)
        wanted["jax.monitoring"] = self._listen
        wanted["jax.profiler"] = self._hear_steps
        guarded = {
            name: functools.partial(guard.call, "hook", then) for name, then in wanted.items()
        }
        self._imports = ImportHook(guarded)

    def set(self) -> None:
        """Hooks what is imported, and the rest as soon as it is."""
        self._imports.install()

    def remove(self) -> None:
        """Puts everything back, as far as nobody has wrapped it again."""
        self._imports.remove()
        for unregister, listener in self._listeners:
            self._guard.call("unregister", unregister, listener)
        for owner, name, original, ours in reversed(self._patched):
            if vars(owner).get(name) is ours:
                setattr(owner, name, original)
        self._listeners.clear()
        self._patched.clear()

    def _wrap_calls(self, module: ModuleType) -> None:
        for call in _CALLS:
            if call.module == module.__name__:
                self._wrap(
                    module, call.owner, call.method, *_around(call, self._tracker, self._tick)
                )
        if module.__name__ == _RECORDER:
            for method in ("record_start", "record_blocking_completion", "record_completion"):
                self._wrap(module, "OperationRecorder", method, *self._recorded(method))
        if module.__name__ == _COMMITS:
            self._wrap(module, "_AsyncManager", "_thread_func", *_commits(self._tracker))

    def _wrap(
        self,
        module: ModuleType,
        owner: str,
        name: str,
        before: Callable[..., Any],
        after: Callable[..., Any],
    ) -> None:
        """Wraps a method of a class of a module, if there is one."""
        holder: Any = getattr(module, owner, None)
        original = None if holder is None else vars(holder).get(name)
        if original is None:
            self.lacking.append(f"{owner}.{name}")
            return
        guard = self._guard

        @functools.wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            token = guard.call(name, before, args, kwargs)
            try:
                given = original(*args, **kwargs)
            except BaseException as error:
                guard.call(name, after, token, args, error)
                raise
            guard.call(name, after, token, args, None)
            return given

        setattr(holder, name, hooked)
        self._patched.append((holder, name, original, hooked))

    def _recorded(self, method: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Returns what is done before and after a method of Orbax's record of an operation."""
        tracker = self._tracker

        def before(args: tuple[Any, ...], _: Mapping[str, Any]) -> None:
            known = vars(args[0])
            what, path = known["_operation_type"].value, _path(known["_path"])
            if method == "record_start":
                store = str(known.get("_storage_type", ""))
                tracker.starts(what, path, store, bool(known.get("_async_origin")))
            elif method == "record_blocking_completion":
                tracker.blocking_ends(what, path)

        def after(_: object, args: tuple[Any, ...], error: BaseException | None) -> None:
            known = vars(args[0])
            if method == "record_completion" and error is None:
                tracker.completes(known["_operation_type"].value, _path(known["_path"]))

        return before, after

    def _listen(self, module: ModuleType) -> None:
        take, call = self._tracker.event, self._guard.call

        def event(name: str, **labels: Any) -> None:
            if name.startswith(_PREFIXES):
                call("event", take, name, 1.0, labels)

        def value(name: str, number: float, **labels: Any) -> None:
            if name.startswith(_PREFIXES):
                call("event", take, name, float(number), labels)

        for kind, other, listener in (
            ("event", "event", event),
            ("event_duration_secs", "event_duration", value),
            ("scalar", "scalar", value),
        ):
            register = getattr(module, f"register_{kind}_listener", None)
            if register is None:
                self.lacking.append(f"register_{kind}_listener")
                continue
            register(listener)
            unregister = getattr(module, f"unregister_{other}_listener", None)
            if unregister is not None:
                self._listeners.append((unregister, listener))

    def _hear_steps(self, module: ModuleType) -> None:
        def before(_: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            if "step_num" in kwargs:
                self._tick(kwargs["step_num"], ANNOTATED)

        self._wrap(module, "StepTraceAnnotation", "__init__", before, lambda *_: None)


SAID: Final = 0
"""Rank of the steps that the job tells the recorder; those of a higher rank are not heard then."""
ANNOTATED: Final = 1
SAVED: Final = 2


def _around(
    call: _Call, tracker: Tracker, tick: Callable[[object, int], None]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns what is done before and after a call of the job."""
    name = {"step": "step", "path": "directory", "none": ""}[call.first]

    def before(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frame:
        given = args[1] if len(args) > 1 else kwargs.get(name)
        step = _step(given) if call.first == "step" else None
        if step is not None and call.what == "save":
            tick(step, SAVED)
        path = _path(given) if call.first == "path" else None
        return tracker.enter(call.what, step, path, call.background)

    def after(frame: Frame | None, _: tuple[Any, ...], error: BaseException | None) -> None:
        if frame is not None:
            tracker.leave(frame, error)

    return before, after


def _commits(tracker: Tracker) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Returns what is done before and after the background part of a save of v0."""

    def before(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        directory = args[1] if len(args) > 1 else kwargs["directory"]
        return tracker.commit_begins(_path(directory))

    def after(operation: Any, args: tuple[Any, ...], error: BaseException | None) -> None:
        known = vars(args[0])
        failure = error or known.get("_exception")
        tracker.commit_ends(operation, failure, bool(known.get("_cancel_requested")))

    return before, after


def _path(given: object) -> str:
    text = os.fspath(given) if isinstance(given, os.PathLike) else str(given)
    return text.rstrip("/") if "://" in text else os.path.abspath(text)


def _step(given: object) -> int | None:
    number = getattr(given, "step", given)  # v1 takes the metadata of a checkpoint as well
    return int(number) if isinstance(number, int) or hasattr(number, "__index__") else None
