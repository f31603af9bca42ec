"""Where the recorder listens: events of JAX, and methods of Orbax that are wrapped.

Each hook is optional. Names of Orbax that a release does not have are left out, and the life of a
recording says which. A wrapped method calls the original between the two parts of its hook,
whatever happens in them.
"""

import collections
import functools
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple

from orbax_bench_core.recorder.boot import ImportHook
from orbax_bench_core.recorder.guard import Guard
from orbax_bench_core.recorder.lines import METADATA_WAIT, SIGNAL_WAIT
from orbax_bench_core.recorder.operations import Frame, Tracker, What

Tick = Callable[[Any, int], None]
"""Takes the number of a step, and the rank of who says it."""

SAID: Final = 0
"""Rank of the steps that the job tells the recorder; those of a higher rank are not heard then."""
_ANNOTATED: Final = 1
_SAVED: Final = 2

_PREFIXES: Final = ("/jax/orbax/", "/jax/checkpoint/", "/orbax/")
"""Beginnings of the events of Orbax; emergency managers leave out `/jax`."""

_V0: Final = "orbax.checkpoint._src.checkpointers"
_V1: Final = "orbax.checkpoint.experimental.v1._src"
_EMERGENCY: Final = "orbax.checkpoint.experimental.emergency"
_TIERS: Final = f"{_EMERGENCY}.multi_tier_checkpointing"
_MANAGERS: Final = (
    ("orbax.checkpoint.checkpoint_manager", "CheckpointManager"),
    (f"{_EMERGENCY}.checkpoint_manager", "CheckpointManager"),
    (f"{_EMERGENCY}.p2p.checkpoint_manager", "CheckpointManager"),
    (f"{_EMERGENCY}.replicator_checkpoint_manager", "ReplicatorCheckpointManager"),
    (f"{_TIERS}.replicator_checkpoint_manager", "ReplicatorCheckpointManager"),
)
_TRAINING: Final = (f"{_V1}.training.checkpointer", "Checkpointer")
_SYNC: Final = (f"{_V0}.checkpointer", "Checkpointer")
_ASYNC: Final = (f"{_V0}.async_checkpointer", "AsyncCheckpointer")
_COMMITS: Final = (f"{_V0}.async_checkpointer", "_AsyncManager")
_RUNNER: Final = (f"{_V1}.synchronization.thread_utils", "BackgroundThreadRunner")
_TRACKING: Final = "orbax.checkpoint._src.logging.event_tracking"
_FUTURES: Final = "orbax.checkpoint._src.futures.future"
_ARRAYS: Final = "orbax.checkpoint._src.metadata.array_metadata_store"
_OBJECTS: Final = ("", "_checkpointables", "_pytree")
"""Ends of the names of the methods of v1."""


_OLD: Final = ("_pytree", "_pytree_async", "record_save_start", "record_save_completion")
"""Ends of names that only older releases have."""


class _Hook(NamedTuple):
    """What is done before and after a method; after it also with its exception."""

    module: str
    owner: str  # class; empty for a function of the module
    name: str
    before: Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
    after: Callable[[Any, tuple[Any, ...], BaseException | None], object]


def time_waits(hear: Callable[[str, float], object]) -> None:
    """Lets `hear` take the waits for the primary host of this process: the event, and its seconds.

    What Orbax times of a host's own writes, `OWN_TIMES`, has these waits in it.
    """
    Hooks(_waits(hear), Guard()).set()


def hooks_of_a_job(tracker: Tracker, tick: Tick) -> Iterator[_Hook]:
    """Yields the hooks on all that a job calls, and on what Orbax does behind it."""

    def waits(event: str, seconds: float) -> None:
        tracker.event(event, seconds, {})

    for hooks in (_calls(tracker, tick), _functions(tracker), _recorded(tracker), _waits(waits)):
        yield from hooks
    yield from (_steps(tick), _commits(tracker))


class Hooks:
    """Hooks, each set as soon as the module is imported that it is on."""

    def __init__(
        self,
        hooks: Iterable[_Hook],
        guard: Guard,
        hear: Callable[[str, float, Mapping[str, Any]], object] | None = None,
    ) -> None:
        """Sets no hook yet; `hear` takes all events of Orbax, with value and labels."""
        self._guard = guard
        self._patched: list[tuple[Any, str, Any, Any]] = []
        self._listeners: list[tuple[Callable[[Any], None], Any]] = []
        self.lacking: list[str] = []  # names that this release of Orbax or JAX does not have
        self._hooks: dict[str, list[_Hook]] = collections.defaultdict(list)
        for hook in hooks:
            self._hooks[hook.module].append(hook)
        wanted = dict.fromkeys(self._hooks, self._wrap_all)
        if hear is not None:
            wanted["jax.monitoring"] = functools.partial(self._listen, hear)
        guarded = {
            name: functools.partial(guard.call, "hook", then) for name, then in wanted.items()
        }
        self._imports = ImportHook(guarded)

    def set(self) -> None:
        """Hooks what is imported, and the rest as soon as it is."""
        self._imports.install()

    def remove(self) -> None:
        """Puts everything back, unless somebody has wrapped it again."""
        self._imports.remove()
        for unregister, listener in self._listeners:
            self._guard.call("unregister", unregister, listener)
        for holder, name, original, ours in reversed(self._patched):
            if vars(holder).get(name) is ours:
                setattr(holder, name, original)

    def _wrap_all(self, module: ModuleType) -> None:
        for hook in self._hooks[module.__name__]:
            holder: Any = getattr(module, hook.owner, None) if hook.owner else module
            original = None if holder is None else vars(holder).get(hook.name)
            if original is None:
                if not hook.name.endswith(_OLD):
                    self.lacking.append(f"{hook.owner}.{hook.name}")
            else:
                ours = _wrapped(original, hook, self._guard.call)
                setattr(holder, hook.name, ours)
                self._patched.append((holder, hook.name, original, ours))

    def _listen(
        self, take: Callable[[str, float, Mapping[str, Any]], object], module: ModuleType
    ) -> None:
        call = self._guard.call

        def event(name: str, number: float = 1.0, **labels: Any) -> None:
            if name.startswith(_PREFIXES):
                call("event", take, name, float(number), labels)

        for kind, other in (
            ("event", "event"),
            ("event_duration_secs", "event_duration"),
            ("scalar", "scalar"),
        ):
            register = getattr(module, f"register_{kind}_listener", None)
            unregister = getattr(module, f"unregister_{other}_listener", None)
            if register is None:
                self.lacking.append(f"register_{kind}_listener")
                continue
            register(event)
            if unregister is not None:
                self._listeners.append((unregister, event))


class _Around:
    """The two parts of a hook around one call; what the call raises goes on to its caller."""

    __slots__ = ("_args", "_call", "_hook", "_token")

    def __init__(self, hook: _Hook, call: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self._hook, self._call, self._args = hook, call, args
        self._token = call(hook.name, hook.before, args, kwargs)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._call(self._hook.name, self._hook.after, self._token, self._args, error)


def _wrapped(original: Any, hook: _Hook, call: Callable[..., Any]) -> Any:
    def hooked(*args: Any, **kwargs: Any) -> Any:
        with _Around(hook, call, args, kwargs):
            return original(*args, **kwargs)

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        with _Around(hook, call, args, kwargs):
            return await original(*args, **kwargs)

    is_awaited = inspect.iscoroutinefunction(original)
    return functools.wraps(original)(awaited if is_awaited else hooked)


def _calls(tracker: Tracker, tick: Tick) -> list[_Hook]:
    """Returns the hooks on what a job calls."""

    def hook(
        of: tuple[str, str], name: str, what: What, first: str = "", *, background: bool = False
    ) -> _Hook:
        def before(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frame:
            given = args[1] if len(args) > 1 else kwargs.get(first)
            step = _step(given) if first == "step" else None
            if step is not None and what == "save":
                tick(step, _SAVED)
            return tracker.enter(
                what, step, _path(given) if first == "directory" else None, background
            )

        def after(frame: Frame | None, _: tuple[Any, ...], error: BaseException | None) -> None:
            if frame is not None:
                tracker.leave(frame, error)

        return _Hook(*of, name, before, after)

    found = [
        hook(_SYNC, "save", "save", "directory"),
        hook(_SYNC, "restore", "load", "directory"),
        hook(_ASYNC, "save", "save", "directory", background=True),
        hook(_ASYNC, "restore", "load", "directory"),
        hook(_ASYNC, "wait_until_finished", "wait"),
        hook(_RUNNER, "result", "wait"),
    ]
    for manager in _MANAGERS:
        found.append(hook(manager, "save", "save", "step"))
        found.append(hook(manager, "restore", "load", "step"))
        found.append(hook(manager, "wait_until_finished", "wait"))
    for objects in _OBJECTS:
        for end in (objects, f"{objects}_async"):
            found.append(hook(_TRAINING, f"save{end}", "save", "step"))
            found.append(hook(_TRAINING, f"load{end}", "load", "step"))
    return found


def _functions(tracker: Tracker) -> list[_Hook]:
    """Returns the hooks on functions of v1, whose record of an operation lacks that they raised.

    These are behind `save` and `load`, which a job may have taken from their module before.
    """

    def hook(module: str, name: str, what: What) -> _Hook:
        def before(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
            return _path(args[0] if args else kwargs["path"])

        def after(path: str | None, _: tuple[Any, ...], error: BaseException | None) -> None:
            if error is not None and path is not None:
                tracker.raises(what, path, error)

        return _Hook(f"{_V1}.{module}", "", name, before, after)

    saves = hook("saving.execution", "save_checkpointables_impl", "save")
    return [saves, hook("loading.loading", "_load_impl", "load")]


def _recorded(tracker: Tracker) -> list[_Hook]:
    """Returns the hooks on Orbax's own record of an operation, which every host has."""

    def starts(args: tuple[Any, ...], _: object) -> None:
        known = vars(args[0])
        store = str(known.get("_storage_type", ""))
        tracker.starts(*_named(args), store, bool(known.get("_async_origin")))

    def blocks(args: tuple[Any, ...], _: object) -> None:
        tracker.blocking_ends(*_named(args))

    def completes(_: object, args: tuple[Any, ...], error: BaseException | None) -> None:
        if error is None:
            tracker.completes(*_named(args))

    def saves(args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        tracker.starts("save", _path(args[0]), "", bool(given.get("async_origin")))

    def saved(_: object, args: tuple[Any, ...], __: object) -> None:
        tracker.completes("save", _path(args[0]))

    of, before = (_TRACKING, "OperationRecorder"), (_TRACKING, "")
    return [
        _Hook(*of, "record_start", starts, _nothing),
        _Hook(*of, "record_blocking_completion", blocks, _nothing),
        _Hook(*of, "record_completion", _nothing, completes),
        # Before there was such a record, in 0.11:
        _Hook(*before, "record_save_start", saves, _nothing),
        _Hook(*before, "record_save_completion", _nothing, saved),
    ]


def _commits(tracker: Tracker) -> _Hook:
    """Returns the hook on the background part of a save of v0."""

    def before(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return tracker.commit_begins(_path(args[1] if len(args) > 1 else kwargs["directory"]))

    def after(operation: Any, args: tuple[Any, ...], error: BaseException | None) -> None:
        known = vars(args[0])
        failure = error or known.get("_exception")
        tracker.commit_ends(operation, failure, bool(known.get("_cancel_requested")))

    return _Hook(*_COMMITS, "_thread_func", before, after)


def _waits(hear: Callable[[str, float], object]) -> list[_Hook]:
    """Returns the hooks on where a thread that writes waits for the primary host.

    That makes the directories, which the other hosts look for four times a second.
    """

    def begins(*_: object) -> float:
        return time.perf_counter()

    def hook(module: str, owner: str, name: str, event: str) -> _Hook:
        def ends(begun: float | None, *_: object) -> None:
            if begun is not None:
                hear(event, time.perf_counter() - begun)

        return _Hook(module, owner, name, begins, ends)

    return [
        hook(_ARRAYS, "Store", "_maybe_create_base_dir", METADATA_WAIT),
        hook(_FUTURES, "_SignalingThread", "_wait_for_signals", SIGNAL_WAIT),
    ]


def _steps(tick: Tick) -> _Hook:
    def before(_: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if "step_num" in kwargs:
            tick(kwargs["step_num"], _ANNOTATED)

    return _Hook("jax.profiler", "StepTraceAnnotation", "__init__", before, _nothing)


def _nothing(*_: object) -> None:
    pass


def _named(args: tuple[Any, ...]) -> tuple[What, str]:
    known = vars(args[0])
    return known["_operation_type"].value, _path(known["_path"])


def _path(given: object) -> str:
    text = os.fspath(given) if isinstance(given, os.PathLike) else str(given)
    return text.rstrip("/") if "://" in text else os.path.abspath(text)


def _step(given: object) -> int | None:
    number = getattr(given, "step", given)  # v1 takes the metadata of a checkpoint as well
    return int(number) if hasattr(number, "__index__") else None
