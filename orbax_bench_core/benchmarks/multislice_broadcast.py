"""Broadcast of arrays from the first replica to all others, which writes no file."""

from __future__ import annotations

import dataclasses
from typing import Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import needs, replicas
from orbax_bench_core.benchmarks.support.replicas import own_replica, verify_replicas
from orbax_bench_core.measure import Metrics

_MEMORY_LIMIT_BYTES = 2**30


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultisliceBroadcastOptions(interface.BenchmarkOptions):
    """Options of `multislice_broadcast`.

    Attributes:
        replica_axis_index: Index of the mesh axis along which replicas lie.
    """

    replica_axis_index: interface.Sweepable[int] = 0


@interface.benchmark_options(MultisliceBroadcastOptions)
class MultisliceBroadcast(interface.BenchmarksGenerator[MultisliceBroadcastOptions]):
    """Measures `broadcast_array`: the arrays of the first replica go to all others.

    It needs several processes. One broadcast takes 1 GiB of a device's
    memory at most; a larger tree takes several. `process_spans_multiple_replicas` is the check that
    Orbax makes before. What arrived is verified outside the clock, on every replica.
    """

    def test_fn(
        self, context: interface.TestContext[MultisliceBroadcastOptions]
    ) -> interface.TestResult:
        """Runs one broadcast."""
        import jax
        from orbax.checkpoint._src.multihost import multihost, multislice

        from orbax_bench_core.state import tree_bytes

        metrics, options = Metrics(), context.options
        axis = options.replica_axis_index
        mesh, tree = needs.require_replicas(
            context, axis, "multislice_broadcast", of_processes=True
        )
        with replicas.orbax_flags(**{replicas.PROCESS_ID_FLAG: True}):
            replicas.initialize()
            with metrics.measure("process_spans_multiple_replicas"):
                multislice.process_spans_multiple_replicas(mesh, replica_axis_index=axis)
            is_source = multislice.in_replica(
                multihost.process_index(), mesh, replica_id=0, replica_axis_index=axis
            )
            leaves, structure = jax.tree.flatten(tree)
            parts = tuple(_on_one_replica(leaf, mesh, axis, is_source=is_source) for leaf in leaves)
            jax.block_until_ready(parts)
            with metrics.measure("broadcast_array", num_bytes=tree_bytes(tree)):
                arrived, _ = multislice.broadcast_one_replica_to_all(
                    parts,
                    mesh,
                    replica_axis_index=axis,
                    is_source=is_source,
                    memory_limit_bytes=_MEMORY_LIMIT_BYTES,
                )
                jax.block_until_ready(arrived)
        restored = jax.tree.unflatten(structure, arrived)
        verify_replicas(context, restored)
        return interface.TestResult(metrics=metrics)


def _on_one_replica(array: Any, mesh: Any, axis: int, *, is_source: bool) -> Any:
    """Returns the input of a replica to a broadcast, which consumes it: its values, or zeros."""
    import jax
    import jax.numpy as jnp

    sharding = jax.sharding.NamedSharding(own_replica(mesh, axis), array.sharding.spec)
    held = [shard for shard in array.addressable_shards if shard.device in sharding.device_set]
    return jax.make_array_from_single_device_arrays(
        array.shape,
        sharding,
        [jnp.copy(shard.data) if is_source else jnp.zeros_like(shard.data) for shard in held],
    )
