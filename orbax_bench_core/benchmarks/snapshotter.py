"""Snapshots of arrays in memory, loaded onto fewer and onto more slices of devices."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import needs
from orbax_bench_core.benchmarks.support.options import BoundedOptions, MeasuringOptions
from orbax_bench_core.benchmarks.support.replicas import verify_replicas
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import jax

    Slices = list[list[jax.Device]]


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
