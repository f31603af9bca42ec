"""Replicas of arrays: needs of broadcasts, equality of copies, and Orbax's flags for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orbax_bench_core.benchmarks.support.needs import require_orbax_module
from orbax_bench_core.interface import UnmetNeed, VerificationError

if TYPE_CHECKING:
    import jax

    from orbax_bench_core.interface import TestContext


REPLICA = "replica"
"""Name of the mesh axis along which replicas lie."""

PROCESS_ID_FLAG = "experimental_orbax_use_distributed_process_id"
MESH_FLAG = "experimental_use_distributed_id_for_mesh_consistency"

_DEFINED_IN = {
    PROCESS_ID_FLAG: "_src.multihost.multihost",
    MESH_FLAG: "experimental.emergency.multihost",
}


def own_replica(mesh: jax.sharding.Mesh, axis: int) -> jax.sharding.Mesh:
    """Returns the part of a mesh that is the first replica with a device of this process.

    Args:
        mesh: A mesh over the devices of all processes.
        axis: Which axis counts replicas.

    Returns:
        A mesh with the same axes, of which `axis` has length 1.

    Raises:
        ValueError: This process has no device in the mesh.
    """
    import jax
    import numpy as np

    own = jax.process_index()
    for replica in np.split(mesh.devices, mesh.devices.shape[axis], axis):
        if any(device.process_index == own for device in replica.flat):
            return jax.sharding.Mesh(replica, mesh.axis_names)
    raise ValueError(f"process {own} has no device in the mesh")


def check_broadcast(targets: Mapping[str, jax.ShapeDtypeStruct]) -> None:
    """Checks that one replica can load for the others, which Orbax takes for granted.

    Args:
        targets: How each array is to be laid out, by name.

    Raises:
        UnmetNeed: A mesh has a single axis, or its first one shards an array.
    """
    from jax.sharding import NamedSharding

    from orbax_bench_core.state import split_axes

    for name, target in targets.items():
        sharding = target.sharding
        assert isinstance(sharding, NamedSharding)
        axes, used = sharding.mesh.axis_names, split_axes(sharding)
        if len(axes) < 2 or axes[0] in used:
            raise UnmetNeed(
                "use_load_and_broadcast: true needs shardings over a mesh of two or more axes, the "
                f"first of which counts replicas and shards nothing; {name!r} is laid out over "
                f"{list(axes)} and sharded by {sorted(used) or 'none'}"
            )


def check_replicas(tree: Any) -> None:
    """Checks that all devices that hold a part of an array hold the same values.

    Raises:
        VerificationError: Two replicas of a part differ; the message names the array.
    """
    # The digest of a tree looks at one replica of each part, and so does not see that another one
    # got nothing. Every process must call.
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    from orbax_bench_core.state import named_leaves

    arrays = [(name, leaf) for name, leaf in named_leaves(tree) if isinstance(leaf, jax.Array)]
    rows = [row for index, (_, leaf) in enumerate(arrays) for row in _sums(index, leaf)]
    if not arrays:
        return
    table = np.array(rows, np.uint32).reshape(-1, 4)
    if jax.process_count() > 1:
        # The processes may hold different numbers of shards, and exchange tables of one size.
        sizes = np.asarray(multihost_utils.process_allgather(np.int32(len(table))))
        padded = np.full((sizes.max(), 4), np.uint32(2**32 - 1))
        padded[: len(table)] = table
        everyone = np.asarray(multihost_utils.process_allgather(padded)).reshape(len(sizes), -1, 4)
        table = np.concatenate([rows[:n] for rows, n in zip(everyone, sizes, strict=True)])
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for index, part, *lanes in table.tolist():
        if found.setdefault((index, part), tuple(lanes)) != tuple(lanes):
            raise VerificationError(f"{arrays[index][0]}: two replicas hold different values")


def verify_replicas(context: TestContext, restored: Any, expected: Any = None) -> None:
    """Verifies what was restored, on every replica; call it outside any measured block."""
    if context.verifier is not None:
        check_replicas(restored)
    context.verify(restored, expected, against="saved")


def _sums(index: int, array: jax.Array) -> list[tuple[int, int, int, int]]:
    """Returns a row per shard held here: the leaf, which part of it, and sums over its content."""
    import numpy as np
    from jax.sharding import NamedSharding

    from orbax_bench_core import state

    # Of other shardings `content.start` sums one replica only.
    assert isinstance(array.sharding, NamedSharding)
    where = array.sharding.devices_indices_map(array.shape)
    parts = {_bounds(part): number for number, part in enumerate(where.values())}
    pending = state.start_digest(array)
    rows = []
    for shard in array.addressable_shards:
        lanes = np.asarray(pending[shard.device]).reshape(2).tolist()
        rows.append((index, parts[_bounds(shard.index)], *lanes))
    return rows


def _bounds(part: tuple[slice, ...]) -> tuple[tuple[int | None, int | None], ...]:
    return tuple((cut.start, cut.stop) for cut in part)


def initialize() -> None:
    """Has Orbax learn which devices belong to which process; once per process, by all of them."""
    from orbax.checkpoint._src.multihost import multihost

    if not multihost.is_runtime_to_distributed_ids_initialized():
        multihost.initialize_runtime_to_distributed_ids()
    if not multihost.is_distributed_to_device_ids_initialized():
        multihost.initialize_distributed_to_device_ids()


@contextlib.contextmanager
def orbax_flags(**values: bool) -> Iterator[None]:
    """Sets command-line flags of Orbax for a while.

    Args:
        **values: The flags, by name.

    Raises:
        UnmetNeed: The installed Orbax lacks a flag.
    """
    # They are read from the whole process, so they must not outlive the benchmark that sets them.
    from absl import flags

    known = flags.FLAGS
    for name in values:
        require_orbax_module(_DEFINED_IN[name], name)
        if name not in known:
            raise UnmetNeed(f"the installed orbax-checkpoint has no flag {name}")
    was_parsed = known.is_parsed()
    if not was_parsed:
        known.mark_as_parsed()
    before: dict[str, Any] = {name: known[name].value for name in values}
    try:
        _set(values)
        yield
    finally:
        _set(before)
        if not was_parsed:
            known.unparse_flags()


def _set(values: Mapping[str, Any]) -> None:
    from absl import flags

    for name, value in values.items():
        setattr(flags.FLAGS, name, value)


@contextlib.contextmanager
def hosts_in_step() -> Iterator[None]:
    """Has the hosts agree again on what Orbax keeps per process, once the context ends."""
    # Orbax numbers its saves in each process, and gives the signals of a save a prefix, to which
    # managers that only some of the hosts have add a word for good. With different numbers or
    # prefixes every later save in these processes, of whatever benchmark, waits for signals that
    # never come. Every process must enter and leave.
    import numpy as np
    from jax.experimental import multihost_utils
    from orbax.checkpoint._src.futures.future import AwaitableSignalsContract as Contract
    from orbax.checkpoint._src.futures.synchronization import OperationIdGenerator as Counter

    prefix = Contract.awaitable_signals_contract_prefix
    try:
        yield
    finally:
        Contract.awaitable_signals_contract_prefix = prefix
    own = int(Counter.get_current_operation_id())
    most = int(np.max(multihost_utils.process_allgather(np.int32(own))))
    for _ in range(own, most):
        Counter.next_operation_id()
