"""Flax NNX models as checkpoint state: built sharded, split into a tree, and merged again.

A model is named by its factory, `module:factory`: a function or class that takes `rngs`
(`flax.nnx.Rngs`) and returns the model. Its variables say how they are sharded, as with
`nnx.with_partitioning`; an axis that the mesh lacks replicates.

Run as a process of its own, it describes a model for one that imports neither JAX nor the model.
"""

import dataclasses
import functools
import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.state import layout
from orbax_bench_core.state.tree import StateError

PyTree = Any


def make_state(factory: str, *, seed: int, mesh: Mesh | None) -> PyTree:
    """Builds a model and returns its state, every array born with its sharding.

    Args:
        factory: Import path of a function that builds the model, `module:function`.
        seed: Seed of its values.
        mesh: Where arrays are laid out; None leaves that to JAX.

    Returns:
        The state as a tree of arrays, which are ready.

    Raises:
        StateError: Flax is not installed, or the function fails or returns no `nnx.Module`.
    """
    split = _split(factory, seed)
    make = functools.partial(_make_state, factory, seed)
    if mesh is None:
        return jax.block_until_ready(jax.jit(make)())
    shardings = _shardings(jax.eval_shape(make), split.partitions, mesh, "")
    return jax.block_until_ready(jax.jit(make, out_shardings=shardings)())


def _make_state(factory: str, seed: int) -> PyTree:
    from flax import nnx

    with nnx.use_eager_sharding(False):  # type: ignore[no-untyped-call]
        model = load_object(factory)(nnx.Rngs(seed))
    return _as_tree(nnx.to_pure_dict(nnx.state(model)), _stored)


def merge(factory: str, tree: PyTree) -> Any:
    """Puts a state back into its model."""
    from flax import nnx

    split = _split(factory, 0)
    state = split.state
    found = _restored(nnx.to_pure_dict(state), tree, "")
    nnx.replace_by_pure_dict(state, found)
    return nnx.merge(split.graph, state)


def load_object(path: str) -> Callable[..., Any]:
    """Imports what `module:name` names."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise StateError(
            f"cannot import {path!r}: {error}; install its package, or put the module next to the "
            "suite file"
        ) from error
    if not callable(found):
        raise StateError(f"{path!r} is of type {type(found).__name__}; give a function or a class")
    callable_: Callable[..., Any] = found
    return callable_


@dataclasses.dataclass(frozen=True)
class _Split:
    graph: Any  # what `nnx.merge` needs beside the state
    state: Any  # shapes only
    partitions: PyTree  # a `PartitionSpec` per variable, as text-keyed dicts


def _split(factory: str, seed: int) -> _Split:
    try:
        from flax import nnx
    except ImportError:
        raise StateError(
            "`nnx` needs Flax, which is not installed; install orbax-bench[flax]"
        ) from None
    make = load_object(factory)
    try:
        with nnx.use_eager_sharding(False):  # type: ignore[no-untyped-call]
            model = nnx.eval_shape(lambda: make(nnx.Rngs(seed)))
    except Exception as error:  # the factory is anyone's code
        raise StateError(
            f"{factory!r} fails when it is called with nnx.Rngs({seed}): "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(model, nnx.Module):
        raise StateError(
            f"{factory!r} returned {type(model).__name__}; a factory returns an nnx.Module"
        )
    graph, state = nnx.split(model)
    partitions = nnx.to_pure_dict(nnx.get_partition_spec(state))
    return _Split(graph, state, _as_tree(partitions, lambda spec: spec))


def _as_tree(node: Any, convert: Callable[[Any], Any]) -> PyTree:
    if isinstance(node, Mapping):
        return {str(key): _as_tree(child, convert) for key, child in node.items()}
    return convert(node)


def _stored(leaf: jax.Array) -> jax.Array:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _restored(abstract: Any, tree: PyTree, where: str) -> Any:
    if isinstance(abstract, Mapping):
        names = {str(key) for key in abstract}
        if not isinstance(tree, Mapping) or set(tree) != names:
            found = sorted(tree) if isinstance(tree, Mapping) else type(tree).__name__
            raise StateError(
                f"{where or 'the root'} of the tree should have {sorted(names)}, has {found}; give "
                "the state of the same model"
            )
        return {
            key: _restored(child, tree[str(key)], f"{where}.{key}".lstrip("."))
            for key, child in abstract.items()
        }
    return jax.random.wrap_key_data(tree) if _is_key(abstract) else tree


def _shardings(shapes: PyTree, partitions: PyTree, mesh: Mesh, where: str) -> PyTree:
    if isinstance(shapes, Mapping):
        return {
            key: _shardings(shapes[key], partitions[key], mesh, f"{where}.{key}".lstrip("."))
            for key in shapes
        }
    layout.check_dtype(where, shapes.dtype.name)
    entries = (
        () if partitions is None else tuple(_keep_present(entry, mesh) for entry in partitions)
    )
    sharding: NamedSharding = layout.named_sharding(where, shapes.shape, entries, mesh)
    return sharding


def _keep_present(entry: Any, mesh: Mesh) -> ShardingEntry:
    names = (entry,) if isinstance(entry, str) else tuple(entry or ())
    return tuple(name for name in names if name in mesh.axis_names) or None


def onto(tree: PyTree, mesh: Mesh) -> PyTree:
    """Returns a tree's arrays with the same partitions on another mesh of the same axis names."""

    def place(leaf: jax.Array) -> jax.Array:
        target = NamedSharding(mesh, _partition(leaf))
        if leaf.is_fully_addressable:
            moved: jax.Array = jax.device_put(leaf, target)
            return moved
        # Not every backend moves an array between sets of devices of several processes.
        everything = whole(leaf)
        return jax.make_array_from_callback(leaf.shape, target, lambda index: everything[index])

    return jax.tree.map(place, tree)


def whole(leaf: jax.Array) -> np.ndarray[Any, Any]:
    """Returns the values of an array that lies on the devices of one process or of several."""
    if leaf.is_fully_addressable:
        return np.asarray(leaf)
    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))


def target_on(tree: PyTree, mesh: Mesh) -> PyTree:
    """Returns the target that loads a tree on another mesh with the same partitions."""

    def describe(leaf: jax.Array) -> jax.ShapeDtypeStruct:
        sharding = NamedSharding(mesh, _partition(leaf))
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    return jax.tree.map(describe, tree)


def _partition(leaf: jax.Array) -> PartitionSpec:
    sharding = leaf.sharding
    return sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()


def _parameters(factory: str) -> int:
    """Returns the elements of all `nnx.Param` of the model that a factory makes."""
    from flax import nnx

    found = nnx.to_pure_dict(nnx.filter_state(_split(factory, 0).state, nnx.Param))
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(found))


def _described(factory: str) -> list[dict[str, Any]]:
    """Returns path, shape, dtype and partition of every array that a model's state has."""
    arrays = jax.eval_shape(functools.partial(_make_state, factory, 0))
    specs = dict(_flat(_split(factory, 0).partitions, ()))
    found = jax.tree_util.tree_flatten_with_path(arrays)[0]
    paths = [tuple(entry.key for entry in path) for path, _ in found]
    return [
        {
            "path": list(path),
            "shape": list(leaf.shape),
            "dtype": leaf.dtype.name,
            "spec": list(specs.get(path) or ()),
        }
        for path, (_, leaf) in zip(paths, found, strict=True)
    ]


def _flat(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _flat(child, (*path, key))
    else:
        yield path, node


def _main(what: str, factory: str) -> int:
    """Prints the `parameters` or the `tree` of a model as one line, or why there is none."""
    try:
        found = _parameters(factory) if what == "parameters" else _described(factory)
    except StateError as error:
        print(error, file=sys.stderr)
        return Exit.INVALID
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
