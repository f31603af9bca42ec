"""Orbax's v1 options, whatever release is installed.

Between releases options came, moved, and began to have an effect: 0.11.14 already takes
`use_replica_parallel` and ignores it. The table here says where an option works, not where it is
accepted; each row was seen on storage or in what Orbax reports.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Literal

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.state import orbax_release

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp

_Group = Literal["saving", "storage", "leaf storage", "loading", "memory", "handler"]
_Chosen = dict[_Group, dict[str, Any]]

_FIRST = "0.11.12"
_MUTABLE = "0.12.0"


@dataclasses.dataclass(frozen=True)
class _Place:
    since: str
    group: _Group
    field: str


@dataclasses.dataclass(frozen=True)
class _Option:
    """Where releases keep an option, and what those without it do.

    Attributes:
        places: Newest first.
        otherwise: What a release older than all places does in every save or load.
    """

    places: tuple[_Place, ...]
    otherwise: Any = None


def _option(name: str, *places: tuple[str, _Group], otherwise: Any = None) -> _Option:
    return _Option(tuple(_Place(since, group, name) for since, group in places), otherwise)


_OPTIONS = {
    "use_ocdbt": _option("use_ocdbt", (_FIRST, "saving")),
    "use_zarr3": _option("use_zarr3", (_FIRST, "saving")),
    "use_compression": _option("use_compression", ("0.11.26", "saving"), otherwise=True),
    "use_replica_parallel": _option(
        "use_replica_parallel", ("0.11.17", "saving"), (_FIRST, "handler")
    ),
    "enable_replica_parallel_separate_folder": _option(
        "enable_replica_parallel_separate_folder", ("0.11.27", "saving"), otherwise=False
    ),
    "chunk_byte_size": _option("chunk_byte_size", ("0.11.34", "storage"), (_FIRST, "leaf storage")),
    "use_load_and_broadcast": _option(
        "use_load_and_broadcast", ("0.11.34", "loading"), otherwise=False
    ),
    "write_concurrent_bytes": _Option(
        (
            _Place("0.11.34", "memory", "write_concurrent_bytes"),
            _Place(_FIRST, "saving", "concurrent_bytes"),
        )
    ),
    "read_concurrent_bytes": _Option(
        (
            _Place("0.11.34", "memory", "read_concurrent_bytes"),
            _Place(_FIRST, "loading", "concurrent_bytes"),
        )
    ),
}


def make_context(**options: Any) -> ocp.Context:
    """Makes an Orbax context with these options set; None leaves one as Orbax has it.

    Args:
        **options: `use_ocdbt`, `use_zarr3`, `use_compression`, `use_replica_parallel`,
            `enable_replica_parallel_separate_folder`, `chunk_byte_size`, `use_load_and_broadcast`,
            `write_concurrent_bytes` and `read_concurrent_bytes`, as Orbax means them.

    Raises:
        UnmetNeed: The installed Orbax cannot do what one of them asks for.
    """
    chosen: _Chosen = {}
    for name, value in options.items():
        place = _place(name, value)
        if place is not None and value is not None:
            chosen.setdefault(place.group, {})[place.field] = value
    if orbax_release.is_at_least(_MUTABLE):
        return _changed(chosen)
    _set_array_handler(**chosen.pop("handler", {}))
    return _built(chosen)


def make_colocated_context() -> ocp.Context:
    """Makes an Orbax context that reads with colocated Python, beside the devices of Pathways.

    Raises:
        UnmetNeed: The installed Orbax has no such thing.
    """
    if not orbax_release.is_at_least("0.11.32"):
        raise UnmetNeed(orbax_release.lacks("load_with_colocated_python: true", "0.11.32"))
    from orbax.checkpoint import pathways
    from orbax.checkpoint import v1 as ocp

    colocated = pathways.CheckpointingImpl.COLOCATED_PYTHON
    if not orbax_release.is_at_least(_MUTABLE):
        kind = ocp.options.PathwaysOptions
        return ocp.Context(pathways_options=kind(checkpointing_impl=colocated))
    context = ocp.Context()
    context.pathways.checkpointing_impl = colocated
    return context


def _place(name: str, value: Any) -> _Place | None:
    """Returns where the installed release keeps an option; None where it need not be told."""
    option = _OPTIONS[name]
    for place in option.places:
        if orbax_release.is_at_least(place.since):
            return place
    if value != option.otherwise:
        setting = f"{name}: {json.dumps(value)}"
        raise UnmetNeed(
            f"{orbax_release.lacks(setting, option.places[-1].since)}, which always does as with "
            f"{name}: {json.dumps(option.otherwise)}"
        )
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
    }
    for group, fields in chosen.items():
        for field, value in fields.items():
            if not hasattr(groups[group], field):  # it would be set, and mean nothing
                raise UnmetNeed(f"the installed Orbax no longer has the option {field}")
            setattr(groups[group], field, value)
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
