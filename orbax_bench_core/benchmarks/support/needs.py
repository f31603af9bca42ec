"""Requirements of a benchmark: checks that raise `UnmetNeed` with one line on what is missing.

Everywhere `benchmark` is who asks, for the message, and `axis` the index of the mesh axis along
which replicas lie.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from orbax_bench_core.interface import UnmetNeed

if TYPE_CHECKING:
    import jax

    from orbax_bench_core.interface import TestContext


def require_tree(context: TestContext, benchmark: str, *, of_all: bool = True) -> Any:
    """Returns the checkpoint data of a repeat.

    Args:
        context: The repeat.
        benchmark: Name of the benchmark, for the message.
        of_all: Whether several processes must hold the arrays together.

    Raises:
        UnmetNeed: There is no data, or each process has its own.
    """
    if context.pytree is None:
        raise UnmetNeed(
            f"{benchmark} needs something to save: add a checkpoint_config with a spec or a path"
        )
    if of_all:
        require_arrays_of_all(context, benchmark)
    return context.pytree


def require_arrays_of_all(context: TestContext, benchmark: str) -> None:
    """Checks that several processes hold the arrays of a repeat together, and not each its own.

    Raises:
        UnmetNeed: A process holds an array alone, so that each would save its own.
    """
    import jax

    from orbax_bench_core.state import named_leaves

    processes = jax.process_count()
    if processes == 1 or context.pytree is None:
        return
    for name, leaf in named_leaves(context.pytree):
        if isinstance(leaf, jax.Array) and leaf.is_fully_addressable:
            raise UnmetNeed(
                f"{benchmark} needs arrays over the devices of all {processes} processes, and each "
                f"has its own {name!r}: add a mesh_config of all their devices, or set processes: "
                "1 under execution"
            )


def require_arrays(context: TestContext, benchmark: str) -> Any:
    """Returns the checkpoint data of a repeat, which holds nothing but arrays over a mesh.

    Raises:
        UnmetNeed: There is no data, or a leaf is no array over a mesh.
    """
    import jax
    from jax.sharding import NamedSharding

    from orbax_bench_core.state import named_leaves

    found = require_tree(context, benchmark)
    for name, leaf in named_leaves(found):
        if not isinstance(leaf, jax.Array) or not isinstance(leaf.sharding, NamedSharding):
            raise UnmetNeed(
                f"{benchmark} needs a checkpoint of arrays over a mesh; leave out {name!r}, which "
                f"is {type(leaf).__name__}"
            )
    return found


def require_leaf(context: TestContext, name: str, benchmark: str) -> Any:
    """Returns one array of the checkpoint data.

    Raises:
        UnmetNeed: The data have no such array at their top level.
    """
    import jax

    found = require_tree(context, benchmark)
    array = found.get(name) if isinstance(found, dict) else None
    if not isinstance(array, jax.Array):
        raise UnmetNeed(
            f"{benchmark} needs an array called {name!r} in the spec of its checkpoint_config; "
            f"there is {sorted(found) if isinstance(found, dict) else type(found).__name__}"
        )
    return array


def require_mesh(context: TestContext, benchmark: str) -> jax.sharding.Mesh:
    """Returns the device mesh of a repeat."""
    if context.mesh is None:
        raise UnmetNeed(f"{benchmark} needs a mesh: add a mesh_config")
    return context.mesh


def require_replicas(
    context: TestContext, axis: int, benchmark: str, *, of_processes: bool = False
) -> tuple[jax.sharding.Mesh, Any]:
    """Returns a mesh with at least two replicas, and data of which each holds whole arrays.

    Args:
        context: The repeat.
        axis: Which axis of the mesh counts replicas.
        benchmark: Name of the benchmark, for the message.
        of_processes: Whether several processes must take part.

    Raises:
        UnmetNeed: The mesh has fewer than two axes or replicas, an array is sharded along that
            axis, or there is one process where several are needed.
    """
    from orbax_bench_core.state import named_leaves, split_axes

    mesh = require_mesh(context, benchmark)
    shape = mesh.devices.shape
    if not 0 <= axis < len(shape) or shape[axis] < 2 or len(shape) < 2:
        raise UnmetNeed(
            f"{benchmark} needs a mesh of two or more axes with two or more replicas along axis "
            f"{axis}; this one is {dict(zip(mesh.axis_names, shape, strict=True))}"
        )
    tree = require_arrays(context, benchmark)
    if of_processes:
        require_processes(benchmark)
    name = mesh.axis_names[axis]
    for leaf_name, leaf in named_leaves(tree):
        if name in split_axes(leaf.sharding):
            raise UnmetNeed(
                f"{benchmark} needs whole arrays on each replica; {leaf_name!r} is sharded along "
                f"{name!r}, the axis of the replicas"
            )
    return mesh, tree


def require_processes(benchmark: str) -> None:
    """Checks that several host processes run together.

    Raises:
        UnmetNeed: There is only one.
    """
    import jax

    if jax.process_count() < 2:
        raise UnmetNeed(
            f"{benchmark} needs 2 or more processes joined by jax.distributed, here is 1: set "
            "processes: 2 under execution"
        )


def require_one_process(benchmark: str) -> None:
    """Checks that this process controls every device.

    Raises:
        UnmetNeed: There are several.
    """
    import jax

    if jax.process_count() > 1:
        raise UnmetNeed(
            f"{benchmark} needs a single process, which holds every device; here are "
            f"{jax.process_count()}: set processes: 1 under execution"
        )


def require_orbax_module(name: str, benchmark: str) -> ModuleType:
    """Imports a module of Orbax that not every release has.

    Args:
        name: The module, below `orbax.checkpoint`.
        benchmark: Name of the benchmark, for the message.

    Raises:
        UnmetNeed: The installed release does not have it, or it cannot be imported.
    """
    import orbax.checkpoint as ocp

    try:
        return importlib.import_module(f"orbax.checkpoint.{name}")
    except ImportError as error:
        raise UnmetNeed(
            f"{benchmark} needs orbax.checkpoint.{name}, which orbax-checkpoint "
            f"{ocp.__version__} cannot give: {error}"
        ) from None
