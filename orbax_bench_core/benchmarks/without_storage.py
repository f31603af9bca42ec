"""Benchmarks that write no file: broadcasts, snapshots in memory, dispatched functions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import needs, replicas
from orbax_bench_core.benchmarks.support.options import BoundedOptions, MeasuringOptions
from orbax_bench_core.benchmarks.support.replicas import own_replica, verify_replicas
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import jax

    Slices = list[list[jax.Device]]


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


_SNAPSHOTTER = "snapshotter"
_ROWS_PER_SLICE, _COLUMNS_PER_DEVICE = 16, 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class SnapshotterOptions(BoundedOptions, MeasuringOptions):
    """Options of `snapshotter`.

    Attributes:
        num_scale_down_slices: Slices that a snapshot of more slices is loaded onto.
        num_scale_up_slices: Slices that a snapshot of fewer slices is loaded onto.
        num_savings: How often to do both.
    """

    num_scale_down_slices: interface.Sweepable[int] = 1
    num_scale_up_slices: interface.Sweepable[int] = 2
    num_savings: interface.Sweepable[int] = 1

    least = {"num_scale_down_slices": 1, "num_scale_up_slices": 1, "num_savings": 1}


@interface.benchmark_options(SnapshotterOptions)
class Snapshotter(interface.BenchmarksGenerator[SnapshotterOptions]):
    """Measures `save`, `load_scale_down`, `save_scale_down_state` and `load_scale_up`.

    The first two take a snapshot on many slices and load it onto few, the others the reverse. It
    needs one process that controls all slices, as on Pathways, and pathwaysutils. The first axis of
    a mesh, if there is one, counts slices. It makes its own array: 16 rows per slice and 64 columns
    per device of a slice, float32. What was loaded is checked outside the clock.
    """

    def test_fn(self, context: interface.TestContext[SnapshotterOptions]) -> interface.TestResult:
        """Takes snapshots and loads them."""
        metrics, options = Metrics(), context.options
        needs.require_one_process(_SNAPSHOTTER)
        few, many = options.num_scale_down_slices, options.num_scale_up_slices
        slices = _slices(context.mesh)
        if len(slices) < max(few, many):
            raise interface.UnmetNeed(
                f"{_SNAPSHOTTER} needs {max(few, many)} slices of devices, as on Pathways; there "
                f"{'is' if len(slices) == 1 else 'are'} {len(slices)} here: add a mesh_config "
                "whose first axis counts slices, or ask for fewer"
            )
        interface.optional_module("pathwaysutils", "pathways", _SNAPSHOTTER)
        kind = needs.require_orbax_module(
            "experimental.v1._src.training.pathways.snapshotter", _SNAPSHOTTER
        ).Snapshotter
        for step in range(options.num_savings):
            _snapshot(metrics, context, kind, step, slices, sizes=(many, few))
            _snapshot(metrics, context, kind, step, slices, sizes=(few, many))
        return interface.TestResult(metrics=metrics)


def _snapshot(
    metrics: Metrics,
    context: interface.TestContext[SnapshotterOptions],
    kind: Any,
    step: int,
    slices: Slices,
    *,
    sizes: tuple[int, int],
) -> None:
    """Takes a snapshot on the first number of slices and loads it onto the second."""
    import jax

    options = context.options
    saved, loaded = sizes
    operations = ("save", "load_scale_down")
    if saved < loaded:
        operations = ("save_scale_down_state", "load_scale_up")
    array = _array(slices[:saved])
    target = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=_sharding(slices[:loaded]))
    snapshotter = kind(replica_axis_index=0)
    with metrics.measure(operations[0], options.collectors, num_bytes=array.nbytes):
        snapshotter.save(step, {"weights": array})
        snapshotter.join()
    with metrics.measure(operations[1], options.collectors, num_bytes=array.nbytes):
        restored = jax.block_until_ready(snapshotter.load({"weights": target}))
    verify_replicas(context, restored, {"weights": array})


def _slices(mesh: jax.sharding.Mesh | None) -> Slices:
    """Returns the devices of each slice: the rows of the mesh or, without one, what JAX says."""
    import jax

    if mesh is not None:
        return [row.flatten().tolist() for row in mesh.devices]
    slices: dict[int, list[jax.Device]] = {}
    for device in jax.devices():
        slices.setdefault(getattr(device, "slice_index", 0), []).append(device)
    return [slices[index] for index in sorted(slices)]


def _sharding(slices: Slices) -> jax.sharding.NamedSharding:
    import jax
    import numpy as np

    mesh = jax.sharding.Mesh(np.array(slices), ("replica", "model"))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "model"))


def _array(slices: Slices) -> jax.Array:
    import jax
    import numpy as np

    shape = (_ROWS_PER_SLICE * len(slices), _COLUMNS_PER_DEVICE * len(slices[0]))
    values = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    array: jax.Array = jax.block_until_ready(jax.device_put(values, _sharding(slices)))
    return array


_DISPATCHERS = "multihost_dispatchers"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultihostDispatchersOptions(interface.BenchmarkOptions):
    """Options of `multihost_dispatchers`.

    Attributes:
        use_colocated: Dispatch by colocated Python. Orbax has no other way, so false is dropped.
        device_count: How many devices `dispatch_with_dummy_result_array` runs on; null takes all.
    """

    use_colocated: interface.Sweepable[bool] = True
    device_count: interface.Sweepable[int | None] = None

    def is_valid(self) -> bool:
        """There is only one dispatcher."""
        return self.use_colocated


@interface.benchmark_options(MultihostDispatchersOptions)
class MultihostDispatchers(interface.BenchmarksGenerator[MultihostDispatchersOptions]):
    """Measures three kinds of dispatch, each until its result is ready.

    `dispatch_without_result_specs` sends the array of the checkpoint_config called `array` and gets
    nothing back; `dispatch_with_dummy_result_array` sends next to nothing;
    `dispatch_with_result_specs` gets the array back, which is verified outside the clock. It needs
    cloudpickle.
    """

    def test_fn(
        self, context: interface.TestContext[MultihostDispatchersOptions]
    ) -> interface.TestResult:
        """Dispatches three times."""
        import jax

        metrics, options = Metrics(), context.options
        interface.optional_module("cloudpickle", "pathways", _DISPATCHERS)
        dispatchers = needs.require_orbax_module("_src.multihost.dispatchers", _DISPATCHERS)
        array = jax.block_until_ready(needs.require_leaf(context, "array", _DISPATCHERS))
        dispatcher = dispatchers.ColocatedPythonDispatcher()
        with metrics.measure("dispatch_without_result_specs", num_bytes=array.nbytes):
            done = dispatcher.dispatch(_nothing, input_arrays=array)
            jax.block_until_ready(done)
        _check_done(done)
        small = dispatchers.get_dummy_input_array(_devices(options.device_count))
        jax.block_until_ready(small)
        with metrics.measure("dispatch_with_dummy_result_array"):
            done = dispatcher.dispatch(_nothing, input_arrays=small)
            jax.block_until_ready(done)
        _check_done(done)
        specs = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)
        with metrics.measure("dispatch_with_result_specs", num_bytes=array.nbytes):
            returned = dispatcher.dispatch(_same, input_arrays=array, result_specs=specs)
            jax.block_until_ready(returned)
        context.verify({**context.pytree, "array": returned})
        return interface.TestResult(metrics=metrics)


def _devices(count: Any) -> list[Any]:
    import jax

    devices = jax.devices()
    if count is not None and not 1 <= count <= len(devices):
        raise interface.UnmetNeed(
            f"device_count: {count} needs that many devices; {len(devices)} are here"
        )
    return devices[:count]


def _nothing(array: Any) -> None:
    del array


def _same(array: Any) -> Any:
    return array


def _check_done(done: Any) -> None:
    import numpy as np

    if not all(np.asarray(shard.data).item() for shard in done.addressable_shards):
        raise interface.VerificationError("a dispatched function did not report that it had run")
