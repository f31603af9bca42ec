"""Cache of the states that repeats share."""

import dataclasses
from collections import OrderedDict
from typing import Any

import jax
from jax.sharding import Mesh

from orbax_bench_core.config import ArraySpec, CheckpointConfig, MeshConfig, leaves
from orbax_bench_core.state import layout
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.loading import load_checkpoint
from orbax_bench_core.state.synthetic import generate
from orbax_bench_core.state.tree import (
    agreed_bytes,
    available_bytes,
    held_bytes,
    tree_bytes,
    without_host_copies,
)

PyTree = Any
_Key = tuple[str, str | None, Mesh | None]


@dataclasses.dataclass(frozen=True)
class LoadedState:
    """Tree that a benchmark checkpoints, with its size and digest."""

    tree: PyTree  # ready; None when the benchmark makes its own
    digest: dict[str, str]  # of the content of each leaf, by dotted path
    num_bytes: int  # replicas once
    held_bytes: int  # on the devices of this process


class StateCache:
    """Makes the state of a checkpoint and mesh once and hands it out again.

    Args:
        max_bytes: Most bytes of arrays to keep on the devices of this process; by default half of
            the memory that is available when nothing is kept. The state asked for is always made,
            be it larger; the least recently used others go first.
    """

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[_Key, LoadedState] = OrderedDict()

    def get(
        self, checkpoint: CheckpointConfig, mesh_config: MeshConfig | None, mesh: Mesh | None
    ) -> LoadedState:
        """Returns the state of a checkpoint on a mesh.

        Args:
            checkpoint: What to make or load.
            mesh_config: The mesh of the point; with the checkpoint it is the key of the cache.
            mesh: The same as JAX has it; None spreads nothing.

        Raises:
            StateError: It cannot be made or loaded here.
        """
        # It is made again if it is not kept or if a benchmark deleted or donated one of its arrays.
        # Containers and arrays are new objects at each call; the memory of arrays is shared. In a
        # multi-process run every process must call with the same arguments.
        if checkpoint.is_empty:
            return LoadedState(tree=None, digest={}, num_bytes=0, held_bytes=0)
        key = _key(checkpoint, mesh_config, mesh)
        state = self._entries.pop(key, None)
        leaves = () if state is None else jax.tree.leaves(state.tree)
        if state is None or any(isinstance(x, jax.Array) and x.is_deleted() for x in leaves):
            state = self._make(checkpoint, mesh)
        self._entries[key] = state
        self._make_room(0)
        return dataclasses.replace(
            state, tree=without_host_copies(state.tree), digest=dict(state.digest)
        )

    def clear(self) -> None:
        """Forgets everything; memory is freed once no benchmark holds the arrays either."""
        self._entries.clear()

    def _make(self, checkpoint: CheckpointConfig, mesh: Mesh | None) -> LoadedState:
        if checkpoint.path is not None:
            tree = load_checkpoint(checkpoint)
        elif checkpoint.nnx is not None:
            from orbax_bench_core.state import nnx  # which is also run as a program

            tree = nnx.make_state(checkpoint.nnx, seed=checkpoint.random_seed, mesh=mesh)
        else:
            self._make_room(_bytes_to_hold(checkpoint, mesh))
            tree = generate(checkpoint.spec, seed=checkpoint.random_seed, mesh=mesh)
        return LoadedState(tree, digest(tree), tree_bytes(tree), held_bytes(tree))

    def _make_room(self, coming: int) -> None:
        """Drops the least recently used states until `coming` more bytes fit."""
        # The newest stays when nothing is coming: it is the one that was asked for.
        newest = 1 if coming == 0 else 0
        if len(self._entries) <= newest:
            return
        limit = self._max_bytes
        kept = sum(entry.held_bytes for entry in self._entries.values())
        if limit is None:
            limit = agreed_bytes((available_bytes() + kept) // 2)
        while kept + coming > limit and len(self._entries) > newest:
            _, dropped = self._entries.popitem(last=False)
            kept -= dropped.held_bytes


def _key(checkpoint: CheckpointConfig, mesh_config: MeshConfig | None, mesh: Mesh | None) -> _Key:
    if checkpoint.path is not None:
        # Loading spreads arrays over all devices, whatever the mesh.
        return checkpoint.model_dump_json(), None, None
    configured = None if mesh_config is None else mesh_config.model_dump_json(exclude={"name"})
    return checkpoint.model_dump_json(), configured, mesh


def _bytes_to_hold(checkpoint: CheckpointConfig, mesh: Mesh | None) -> int:
    return sum(
        layout.local_bytes(leaf, layout.sharding_of(".".join(path), leaf, mesh))
        for path, leaf in leaves(checkpoint.spec)
        if isinstance(leaf, ArraySpec)
    )
