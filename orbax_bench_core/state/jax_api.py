"""JAX functions that moved between releases."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, PartitionSpec


def shard_map(
    program: Callable[..., jax.Array],
    mesh: Mesh | AbstractMesh,
    *,
    inputs: PartitionSpec,
    outputs: PartitionSpec,
) -> Callable[..., jax.Array]:
    """Maps a program over the shards of its argument, unchecked."""
    mapped: Callable[..., jax.Array]
    if hasattr(jax, "shard_map"):
        mapped = jax.shard_map(
            program, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False
        )
        return mapped
    from jax.experimental import shard_map as before_0_6

    mapped = before_0_6.shard_map(
        program, mesh=mesh, in_specs=inputs, out_specs=outputs, check_rep=False
    )
    return mapped


def enable_x64() -> contextlib.AbstractContextManager[Any]:
    """Returns a context in which JAX has 64-bit types."""
    import jax.experimental

    before_0_8: Any = jax.experimental
    enable: Any = jax.enable_x64 if hasattr(jax, "enable_x64") else before_0_8.enable_x64
    context: contextlib.AbstractContextManager[Any] = enable(True)
    return context


def join_processes(
    coordinator: str, *, num_processes: int, process_id: int, heartbeat_s: int
) -> None:
    """Joins this process with others; call it before the first device is used."""
    if jax.config.values.get("jax_cpu_collectives_implementation") not in {"gloo", "mpi"}:
        # An old JAX joins processes on CPUs only when it is told how.
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    known = inspect.signature(jax.distributed.initialize).parameters
    name = "heartbeat_timeout_seconds"
    settings: dict[str, Any] = {name: heartbeat_s} if name in known else {}
    jax.distributed.initialize(
        coordinator, num_processes=num_processes, process_id=process_id, **settings
    )


def leaf_name(path: Sequence[Any]) -> str:
    """Returns the path of a leaf as `params.layers.0.w`."""
    # The same as `jax.tree_util.keystr(path, simple=True, separator=".")`, which 0.5.0 lacks.
    return ".".join(str(_bare(key)) for key in path)


def _bare(key: Any) -> Any:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return key
