"""Orbax's v1 functions and options under one name each: releases renamed and moved them."""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib.metadata
import json
import operator
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from orbax_bench_core.files import AnyPath
from orbax_bench_core.interface import UnmetNeed
from orbax_bench_core.state.tree import StateError

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp

_Group = Literal[
    "saving",
    "storage",
    "leaf storage",
    "loading",
    "memory",
    "handler",
    "asynchronous",
    "file",
    "atomicity",
]
_Chosen = dict[_Group, dict[str, Any]]
_FIRST = "0.11.12"
_MUTABLE = "0.12.0"


def save(path: AnyPath, tree: Any) -> None:
    """Saves a tree, and returns when it is committed."""
    _function("save", "save_pytree")(path, tree)


def save_async(path: AnyPath, tree: Any) -> Any:
    """Begins to save a tree; the `result()` of what it returns waits until it is committed."""
    return _function("save_async", "save_pytree_async")(path, tree)


def replace(path: AnyPath, tree: Any) -> None:
    """Saves a tree over a checkpoint that may be there."""
    replacing = {"overwrite" if is_at_least("0.11.14") else "force": True}
    _function("save", "save_pytree")(path, tree, **replacing)


def load(path: AnyPath, target: Any) -> Any:
    """Loads what `save` saved."""
    return _function("load", "load_pytree")(path, target)


def scalar_target(value: Any) -> Any:
    """Returns the stand-in of a number or a string in the target of a load: its type."""
    # Before 0.11.20 Orbax took the type from a value.
    return type(value) if is_at_least("0.11.20") else type(value)()


def load_item(root: AnyPath, item: str | None, target: Any) -> Any:
    """Loads one tree of a checkpoint; for an `item` of None the root holds its arrays.

    Args:
        root: The checkpoint.
        item: Name of the tree in it; None if the root holds the arrays of the only one.
        target: A tree of `jax.ShapeDtypeStruct` that says how each array is laid out.

    Raises:
        StateError: The installed Orbax loads no item of this name.
    """
    if is_at_least("0.11.14"):
        return _function("load", "load_pytree")(root, target, checkpointable_name=item)
    if item != "pytree":
        raise StateError(lacks(f"an item called {item!r}", "0.11.14"))
    return load(root, target)


def load_item_async(root: AnyPath, item: str | None, target: Any) -> Any:
    """Begins to load one tree of a checkpoint; `result()` of what it returns is the tree.

    Raises:
        UnmetNeed: The installed Orbax does not load this format in the background.
    """
    from orbax.checkpoint import v1 as ocp

    asked = "load_async: true"
    if not is_at_least(_MUTABLE):
        raise UnmetNeed(lacks(asked, _MUTABLE))
    try:
        return ocp.load_async(root, target, checkpointable_name=item)
    except NotImplementedError as error:
        raise UnmetNeed(
            f"orbax-checkpoint {installed()} refuses {asked}: {error}; only safetensors_load "
            "measures it"
        ) from None


def describe_item(root: AnyPath, item: str | None) -> Any:
    """Returns one tree of a checkpoint, its arrays as shape and dtype; None without metadata."""
    folder = root if item is None else root / item
    if is_at_least("0.11.26"):
        try:
            return _function("metadata", "pytree_metadata")(root, checkpointable_name=item).metadata
        except TypeError:
            pass  # it does not describe scalars that are bool or complex, but loads them
    return _described_by_v0(folder)


def _described_by_v0(directory: AnyPath) -> Any:
    import jax
    from orbax.checkpoint import PyTreeCheckpointHandler, metadata

    def of(leaf: Any) -> Any:
        # A description stands for a scalar too, where a target must have a value.
        kinds = {metadata.StringMetadata: ""}
        scalar = isinstance(leaf, metadata.ScalarMetadata)
        if not scalar:
            return kinds.get(type(leaf), leaf)
        zero = leaf.dtype.type(0)
        return zero if leaf.dtype.kind == "c" else zero.item()

    described = PyTreeCheckpointHandler().metadata(directory)
    return jax.tree.map(of, getattr(described, "tree", described))


def save_items(path: AnyPath, items: Mapping[str, Any]) -> None:
    """Saves several items as one checkpoint, and returns when it is committed."""
    _function("save_checkpointables")(path, dict(items))


def delete(path: AnyPath, item: str | None) -> None:
    """Deletes one item of a checkpoint, or all of it, and returns when its files are gone."""
    _function("delete")(path, checkpointable_name=item)


def delete_async(path: AnyPath, item: str | None) -> Any:
    """Begins to delete as `delete` does; the `result()` of what it returns waits for the end."""
    return _function("delete_async")(path, checkpointable_name=item)


def save_items_async(path: AnyPath, items: Mapping[str, Any]) -> Any:
    """Begins to save several items, as `save_async` does with a tree."""
    return _function("save_checkpointables_async")(path, dict(items))


def load_items(path: AnyPath, targets: Mapping[str, Any]) -> dict[str, Any]:
    """Loads the items that targets are given for; None stands for one as it was saved."""
    found: dict[str, Any] = _function("load_checkpointables")(path, dict(targets))
    return found


def describe_items(path: AnyPath) -> dict[str, Any]:
    """Returns the metadata of each item of a checkpoint."""
    found: dict[str, Any] = _function("checkpointables_metadata")(path).metadata
    return found


def save_piece(path: AnyPath, tree: Any) -> None:
    """Adds a tree to a checkpoint that `finalize_pieces` makes one."""
    _function("partial.save")(path, tree)


def save_piece_async(path: AnyPath, tree: Any) -> Any:
    """Begins to add a tree, as `save_async` begins to save one."""
    return _function("partial.save_async")(path, tree)


def finalize_pieces(path: AnyPath) -> None:
    """Makes a checkpoint of all pieces that were saved."""
    _function("partial.finalize")(path)


def placeholder() -> Any:
    """Returns the stand-in in a target for a leaf that is not to be loaded."""
    return _function("PLACEHOLDER")


def _function(name: str, earlier_name: str = "") -> Any:
    from orbax.checkpoint import v1 as ocp

    for each in filter(None, (name, earlier_name)):
        with contextlib.suppress(AttributeError):
            return operator.attrgetter(each)(ocp)
    raise UnmetNeed(f"orbax-checkpoint {installed()}, which is installed, has no v1.{name}")


_OPTIONS: Final[dict[str, tuple[tuple[str, _Group], ...]]] = {
    "use_ocdbt": ((_FIRST, "saving"),),
    "use_zarr3": ((_FIRST, "saving"),),
    "use_compression": (("0.11.26", "saving"),),
    "use_replica_parallel": (("0.11.17", "saving"), (_FIRST, "handler")),
    "enable_replica_parallel_separate_folder": (("0.11.27", "saving"),),
    "chunk_byte_size": (("0.11.34", "storage"), (_FIRST, "leaf storage")),
    "use_load_and_broadcast": (("0.11.34", "loading"),),
    "write_concurrent_bytes": (("0.11.34", "memory"), (_FIRST, "saving")),
    "transfer_concurrent_bytes": ((_MUTABLE, "memory"),),
    "read_concurrent_bytes": (("0.11.34", "memory"), (_FIRST, "loading")),
    "deepcopy_host_arrays": (("0.12.5", "memory"),),
    "create_directories_asynchronously": ((_MUTABLE, "asynchronous"),),
    "timeout_secs": ((_MUTABLE, "asynchronous"),),
    "enable_pinned_host_transfer": ((_MUTABLE, "saving"),),
    "ocdbt_target_data_file_size": ((_MUTABLE, "saving"),),
    "min_slice_bytes_for_replica_parallel": ((_MUTABLE, "saving"),),
    "max_replicas_for_replica_parallel": ((_MUTABLE, "saving"),),
    "enable_write_sharding_file": ((_MUTABLE, "saving"),),
    "enable_post_merge_validation": ((_MUTABLE, "saving"),),
    "skip_sync_file_validations": (("0.12.5", "file"),),
    "path_permission_mode": ((_MUTABLE, "file"),),
    "atomicity": (("0.12.3", "atomicity"),),
}
"""Places of each option, each with the release that has it first; the newest place first."""
_NAMES: Final[dict[tuple[_Group, str], str]] = {
    ("saving", "write_concurrent_bytes"): "concurrent_bytes",
    ("loading", "read_concurrent_bytes"): "concurrent_bytes",
    ("atomicity", "atomicity"): "mode",
}
"""Names of options in places where they have others."""
_OTHERWISE: Final = {
    "use_compression": True,
    "enable_replica_parallel_separate_folder": False,
    "use_load_and_broadcast": False,
    "deepcopy_host_arrays": True,
    "create_directories_asynchronously": True,
    "timeout_secs": 1200,
    "enable_write_sharding_file": True,
    "enable_post_merge_validation": True,
    "skip_sync_file_validations": False,
    "atomicity": "auto",
}
"""What a release older than all places of an option does in every save or load."""


def make_context(**options: Any) -> ocp.Context:
    """Makes an Orbax context with these of `_OPTIONS` set; None leaves one as Orbax has it."""
    chosen: _Chosen = {}
    for name, value in options.items():
        group = _place(name, value)
        if group is not None and value is not None:
            chosen.setdefault(group, {})[_NAMES.get((group, name), name)] = value
    if is_at_least(_MUTABLE):
        return _changed(chosen)
    _set_array_handler(**chosen.pop("handler", {}))
    return _built(chosen)


def store_floating_as(context: ocp.Context, dtype: str) -> None:
    """Has saves in a context cast arrays of floating-point numbers, and leave all others."""
    if not is_at_least(_MUTABLE):
        raise UnmetNeed(lacks(f"save_dtype: {dtype}", _MUTABLE))
    import jax.numpy as jnp
    from orbax.checkpoint import v1 as ocp

    storage = ocp.options.ArrayOptions.Saving.StorageOptions

    def of(_: object, leaf: Any) -> Any:
        floating = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return storage(dtype=jnp.dtype(dtype)) if floating else None

    context.array.saving.scoped_storage_options_creator = of


def copy_in_background(context: ocp.Context, keys: str) -> None:
    """Has saves in a context copy arrays off their devices later, within the transfer limit.

    Orbax 0.12 reads no `is_prioritized_key_fn`: it asks its callback for each array, whose default
    copies all of them before a save goes on, whatever `transfer_concurrent_bytes` says.

    Args:
        context: The context.
        keys: Regular expression that is searched in the path of each array, such as `params.w`.

    Raises:
        UnmetNeed: The installed Orbax has no such callback.
    """
    if not has_background_callback():
        raise UnmetNeed(lacks(f"background_keys: {json.dumps(keys)}", "0.12.3"))
    context.memory.serialization_status_callback = background_callback(keys)


def has_background_callback() -> bool:
    """Says whether Orbax asks a callback when to copy an array, not its `is_prioritized_key_fn`."""
    return is_at_least("0.12.3")


def background_callback(keys: str) -> Any:
    """Returns the callback of `copy_in_background`, which v0 array handlers take as well."""
    import jax
    from orbax.checkpoint._src.serialization import types

    priority = types.TransferPriority

    class Callback(types.DefaultSerializationStatusCallback):  # type: ignore[misc]
        def key_priority(self, keypath: Any) -> Any:
            path = jax.tree_util.keystr(keypath, simple=True, separator=".")
            later = re.search(keys, path)
            return priority.ASYNCHRONOUS_DEPRIORITIZED if later else priority.SYNCHRONOUS

    return Callback()


def regulate_transfers(
    context: ocp.Context, *, least_gib: float, most_gib: float, surge_bytes: int | None
) -> None:
    """Has Orbax set the transfer limit of each save in a context by the memory that the last took.

    Args:
        context: The context.
        least_gib: Limit of the first save, in GiB, below which none goes.
        most_gib: Limit above which none goes, in GiB.
        surge_bytes: Memory that something else is about to take, for which a limit leaves room.

    Raises:
        UnmetNeed: The installed Orbax has no regulator, or it refuses the two limits.
    """
    if not is_at_least("0.12.8"):
        raise UnmetNeed(lacks(f"regulator_max_gb: {most_gib}", "0.12.8"))
    import psutil
    from orbax.checkpoint import v1 as ocp
    from orbax.checkpoint._src.serialization.memory_regulator import MemoryProfiler

    class Resident(MemoryProfiler):  # type: ignore[misc]
        """Larger of the resident sets before and after the blocking part of a save."""

        def profiler_start(self) -> None:
            self._peak_usage_bytes = self._resident()

        def profiler_end(self) -> None:
            self._peak_usage_bytes = max(self._peak_usage_bytes, self._resident())

        @staticmethod
        def _resident() -> int:
            return int(psutil.Process().memory_info().rss)

        @property
        def total_memory_gib(self) -> float:
            return float(psutil.virtual_memory().total / 2**30)

    try:
        context.memory.regulator_options = ocp.options.MemoryOptions.RegulatorOptions(
            max_memory_limit_gib=most_gib, min_memory_limit_gib=least_gib, profiler=Resident()
        )
    except ValueError as error:
        raise UnmetNeed(f"Orbax refuses regulator_max_gb: {most_gib}: {error}") from None
    context.memory.expected_surge_bytes = surge_bytes


def load_what_is_given(context: ocp.Context) -> None:
    """Has loads in a context leave what their target lacks, instead of refusing it."""
    if not is_at_least(_MUTABLE):
        raise UnmetNeed(lacks("partial_load", _MUTABLE))
    context.pytree.loading.partial_load = True


def store_as_json(context: ocp.Context, item: str) -> None:
    """Has saves in a context write one item as JSON, which Orbax else takes for a tree."""
    if not is_at_least(_MUTABLE):
        raise UnmetNeed(lacks("an item of JSON", _MUTABLE))
    from orbax.checkpoint import v1 as ocp

    registry = ocp.handlers.local_registry()
    registry.add(ocp.handlers.JsonHandler, checkpointable_name=item)
    context.checkpointables.registry = registry


def make_colocated_context() -> ocp.Context:
    """Makes an Orbax context that reads with colocated Python, beside the devices of Pathways."""
    if not is_at_least("0.11.32"):
        raise UnmetNeed(lacks("load_with_colocated_python: true", "0.11.32"))
    from orbax.checkpoint import pathways
    from orbax.checkpoint import v1 as ocp

    colocated = pathways.CheckpointingImpl.COLOCATED_PYTHON
    if not is_at_least(_MUTABLE):
        kind = ocp.options.PathwaysOptions
        return ocp.Context(pathways_options=kind(checkpointing_impl=colocated))
    context = ocp.Context()
    context.pathways.checkpointing_impl = colocated
    return context


def _place(name: str, value: Any) -> _Group | None:
    """Returns where the installed release keeps an option; None if it need not be told."""
    for since, group in _OPTIONS[name]:
        if is_at_least(since):
            return group
    otherwise = _OTHERWISE.get(name)
    if value != otherwise:
        needs = lacks(f"{name}: {json.dumps(value)}", _OPTIONS[name][-1][0])
        raise UnmetNeed(f"{needs}, which always does as with {name}: {json.dumps(otherwise)}")
    return None


def _changed(chosen: _Chosen) -> ocp.Context:
    """Makes a context whose options are changed in place."""
    from orbax.checkpoint import v1 as ocp

    context = ocp.Context()
    groups: dict[_Group, Any] = {
        "saving": context.array.saving,
        "storage": context.array.saving.storage_options,
        "loading": context.array.loading,
        "memory": context.memory,
        "asynchronous": context.asynchronous,
        "file": context.file,
        "atomicity": getattr(context, "atomicity", None),
    }
    for group, fields in chosen.items():
        for field, value in fields.items():
            if not hasattr(groups[group], field):  # it would be set, and mean nothing
                raise UnmetNeed(f"the installed Orbax no longer has the option {field}")
            current = getattr(groups[group], field)
            kind = type(current) if isinstance(current, enum.Enum) else lambda given: given
            setattr(groups[group], field, kind(value))
    return context


def _built(chosen: _Chosen) -> ocp.Context:
    """Makes a context of options that cannot be changed."""
    from orbax.checkpoint import v1 as ocp

    array, tree = ocp.options.ArrayOptions, ocp.options.PyTreeOptions
    saving = chosen.get("saving", {})
    if "storage" in chosen:
        saving["storage_options"] = array.Saving.StorageOptions(**chosen["storage"])
    settings: dict[str, Any] = {
        "array_options": array(
            saving=array.Saving(**saving), loading=array.Loading(**chosen.get("loading", {}))
        )
    }
    if "leaf storage" in chosen:
        of_every_leaf = array.Saving.StorageOptions(**chosen["leaf storage"])
        settings["pytree_options"] = tree(
            saving=tree.Saving(create_array_storage_options_fn=lambda *_: of_every_leaf)
        )
    if "memory" in chosen:
        settings["memory_options"] = ocp.options.MemoryOptions(**chosen["memory"])
    return ocp.Context(**settings)


def _set_array_handler(**settings: Any) -> None:
    """Has Orbax write arrays with these settings from now on, in the way of its v0 API."""
    if not settings:
        return
    import jax
    from orbax.checkpoint import type_handlers

    # The store of array metadata has no other source: v1 puts it into the handler when it loads.
    store = type_handlers.get_type_handler(jax.Array)._array_metadata_store  # noqa: SLF001
    handler = type_handlers.ArrayHandler(array_metadata_store=store, **settings)
    type_handlers.register_type_handler(jax.Array, handler, override=True)


def is_at_least(release: str) -> bool:
    """Says whether the installed Orbax is `release` or later; `1.2.3.dev4` counts as `1.2.3`."""
    return _numbers(installed()) >= _numbers(release)


def lacks(setting: str, release: str) -> str:
    """Says that a setting needs a later Orbax than the one that is installed."""
    return f"{setting} needs orbax-checkpoint >= {release}; this environment has {installed()}"


@functools.cache
def installed() -> str:
    """Returns the release of Orbax in this environment."""
    return importlib.metadata.version("orbax-checkpoint")


@functools.cache
def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
