"""Keeps a copy of the state in host memory, and loads it onto fewer or more slices."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
    optional_module,
)
from orbax_bench_core.benchmarks.support.options import MeasuringOptions, check_least
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import jax

    Slices = list[list[jax.Device]]

_NAME = "snapshotter"
_ROWS_PER_SLICE, _COLUMNS_PER_DEVICE = 16, 64
_FEWEST = {"num_scale_down_slices": 1, "num_scale_up_slices": 1, "num_savings": 1}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SnapshotterOptions(MeasuringOptions):
    """Options of `snapshotter`.

    Attributes:
        num_scale_down_slices: Slices that a snapshot of more slices is loaded onto.
        num_scale_up_slices: Slices that a snapshot of fewer slices is loaded onto.
        num_savings: How often to do both.
    """

    num_scale_down_slices: int | list[int] = 1
    num_scale_up_slices: int | list[int] = 2
    num_savings: int | list[int] = 1

    def __post_init__(self) -> None:
        """Refuses numbers that leave nothing to measure.

        Raises:
            ValueError: A number is too small.
        """
        check_least(self, **_FEWEST)


@benchmark_options(SnapshotterOptions)
class Snapshotter(BenchmarksGenerator):
    """Measures `save`, `load_scale_down`, `save_scale_down_state` and `load_scale_up`.

    The first two take a snapshot on many slices and load it onto few, the others the reverse. It
    needs one process that controls all slices, as on Pathways, and pathwaysutils. The first axis of
    a mesh, if there is one, counts slices. It makes its own array: 16 rows per slice and 64 columns
    per device of a slice, float32. What was loaded is checked outside the clock.
    """

    def test_fn(self, context: TestContext) -> TestResult:
        """Takes snapshots and loads them."""
        from orbax_bench_core.benchmarks.support import needs

        metrics, options = Metrics(), context.options
        assert isinstance(options, SnapshotterOptions)
        needs.one_process(_NAME)
        few, many = (
            cast("int", options.num_scale_down_slices),
            cast("int", options.num_scale_up_slices),
        )
        slices = _slices(context.mesh)
        if len(slices) < max(few, many):
            raise needs.UnmetNeed(
                f"{_NAME} needs {max(few, many)} slices of devices, as on Pathways; there "
                f"{'is' if len(slices) == 1 else 'are'} {len(slices)} here: add a mesh_config "
                "whose first axis counts slices, or ask for fewer"
            )
        optional_module("pathwaysutils", "pathways", _NAME)
        kind = needs.part_of_orbax(
            "experimental.v1._src.training.pathways.snapshotter", _NAME
        ).Snapshotter
        for step in range(cast("int", options.num_savings)):
            _snapshot(metrics, context, kind, step, slices, sizes=(many, few))
            _snapshot(metrics, context, kind, step, slices, sizes=(few, many))
        return TestResult(metrics=metrics)


def _snapshot(
    metrics: Metrics,
    context: TestContext,
    kind: Any,
    step: int,
    slices: Slices,
    *,
    sizes: tuple[int, int],
) -> None:
    """Takes a snapshot on the first number of slices and loads it onto the second."""
    import jax

    from orbax_bench_core.benchmarks.support.replicas import verify_replicas

    options = context.options
    assert isinstance(options, SnapshotterOptions)
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
