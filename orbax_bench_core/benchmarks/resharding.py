"""Loads into other shardings than were saved, and saves and loads of replicas."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions, measure_save
from orbax_bench_core.benchmarks.support import existing, replicas
from orbax_bench_core.benchmarks.support.needs import require_mesh
from orbax_bench_core.benchmarks.support.options import BoundedOptions
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    import jax


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReshardingOptions(SaveRestoreOptions):
    """Options of `resharding`, beside those of `save_restore`.

    Those that concern saving hold for the reference checkpoint, if it is made here.

    Attributes:
        reference_checkpoint_path: The checkpoint to load; null takes that of the checkpoint_config,
            and saves data that were generated first, on their own mesh.
        reference_sharding_path: JSON file with the target sharding of each leaf, over all devices;
            null spreads each array over all devices as far as its dimensions allow.
    """

    reference_checkpoint_path: interface.Sweepable[str | None] = None
    reference_sharding_path: interface.Sweepable[str | None] = None


@interface.benchmark_options(ReshardingOptions)
class Resharding(interface.BenchmarksGenerator[ReshardingOptions]):
    """Measures `load` of a checkpoint into shardings other than those it was saved with.

    What was loaded is compared as in `orbax_load`.
    """

    def test_fn(self, context: interface.TestContext[ReshardingOptions]) -> interface.TestResult:
        """Runs one load."""
        import jax

        from orbax_bench_core.state import with_targets

        metrics, options = Metrics(), context.options
        reference = _find(context)
        targets = reference.targets(options.reference_sharding_path, jax.devices())
        if options.use_load_and_broadcast:
            replicas.check_broadcast(targets)
        target = with_targets(reference.described, targets)
        with options.orbax_context():
            restored = existing.measure_load(metrics, context, reference, target)
        existing.verify(context, reference, restored)
        return interface.TestResult(metrics=metrics, inventory_path=reference.inventory_path)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RestoreAndBroadcastOptions(ReshardingOptions):
    """Options of `restore_and_broadcast`, beside those of `save_restore`.

    Attributes:
        reference_sharding_path: JSON file with the target sharding of each leaf on one replica,
            which every replica repeats; null spreads each array over the devices of a replica.
        use_load_and_broadcast: Load on one replica and broadcast to the others; otherwise every
            replica reads from storage.
    """

    use_load_and_broadcast: interface.Sweepable[bool] = True


@interface.benchmark_options(RestoreAndBroadcastOptions)
class RestoreAndBroadcast(interface.BenchmarksGenerator[RestoreAndBroadcastOptions]):
    """Measures `load` onto every replica of a mesh whose first axis is `replica`.

    What was loaded is compared as in `resharding`, and every replica with every other.
    """

    def test_fn(
        self, context: interface.TestContext[RestoreAndBroadcastOptions]
    ) -> interface.TestResult:
        """Runs one load."""
        metrics, options = Metrics(), context.options
        reference, target = _find_for_replicas(context, "restore_and_broadcast")
        with options.orbax_context():
            restored = existing.measure_load(metrics, context, reference, target)
        if context.verifier is not None:
            replicas.check_replicas(restored)
        existing.verify(context, reference, restored)
        return interface.TestResult(metrics=metrics, inventory_path=reference.inventory_path)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplicaParallelMultisliceOptions(BoundedOptions, ReshardingOptions):
    """Options of `replica_parallel_multislice`, beside those of `save_restore`.

    Attributes:
        reference_checkpoint_path: The checkpoint whose values are saved; null takes the
            checkpoint_config's data.
        reference_sharding_path: JSON file with the sharding of each leaf on one replica, which
            every replica repeats; null spreads each array over the devices of a replica.
        num_savings: How many checkpoints to save, one after the other.
    """

    num_savings: interface.Sweepable[int] = 1

    least = {"num_savings": 1}


@interface.benchmark_options(ReplicaParallelMultisliceOptions)
class ReplicaParallelMultislice(interface.BenchmarksGenerator[ReplicaParallelMultisliceOptions]):
    """Measures saves of arrays that every replica of a mesh holds; its first axis is `replica`.

    The operations are those of `save_restore` without the load, once per saving. The last
    checkpoint is loaded back and verified outside the clock. `use_replica_parallel` is what there
    is to compare.
    """

    def test_fn(
        self, context: interface.TestContext[ReplicaParallelMultisliceOptions]
    ) -> interface.TestResult:
        """Lays the data out over the replicas and saves it as often as asked."""
        from orbax_bench_core.state import orbax_api

        metrics, options = Metrics(), context.options
        reference, target = _find_for_replicas(context, "replica_parallel_multislice")
        with options.orbax_context():
            tree = reference.load(target)
            reference.drop()
            for saving in range(options.num_savings):
                path = context.path / "ckpt" / str(saving)
                measure_save(metrics, context, path, tree)
            if context.verifier is not None:
                existing.verify(context, reference, orbax_api.load(path, target))
        return interface.TestResult(metrics=metrics)


def _find(context: interface.TestContext[ReshardingOptions]) -> existing.Reference:
    options = context.options
    return existing.find_reference(
        context,
        options.reference_checkpoint_path,
        option="reference_checkpoint_path",
        saving=options.orbax_context(),
    )


def _find_for_replicas(
    context: interface.TestContext[ReshardingOptions], benchmark: str
) -> tuple[existing.Reference, Any]:
    """Returns a checkpoint, and the target with which every replica of the mesh loads it."""
    from orbax_bench_core.state import with_targets

    options, mesh = context.options, require_mesh(context, benchmark)
    if len(mesh.axis_names) < 2 or mesh.axis_names[0] != replicas.REPLICA:
        raise interface.UnmetNeed(
            f"{benchmark} needs a mesh whose first axis is {replicas.REPLICA!r}, such as "
            f"mesh_axes: [{replicas.REPLICA}, model]; this one has {list(mesh.axis_names)}"
        )
    reference = _find(context)
    first = mesh.devices[0].flatten().tolist()
    targets = reference.targets(options.reference_sharding_path, first)
    everywhere = {name: _over_replicas(name, target, mesh) for name, target in targets.items()}
    return reference, with_targets(reference.described, everywhere)


def _over_replicas(
    name: str, target: jax.ShapeDtypeStruct, mesh: jax.sharding.Mesh
) -> jax.ShapeDtypeStruct:
    import jax
    from jax.sharding import NamedSharding

    from orbax_bench_core.state import StateError

    assert isinstance(target.sharding, NamedSharding)
    single = target.sharding.mesh
    if replicas.REPLICA in single.axis_names:
        raise StateError(
            f"leaf {name!r}: the sharding file describes one replica, and may have no axis called "
            f"{replicas.REPLICA!r}; it has {list(single.axis_names)}"
        )
    assert isinstance(single, jax.sharding.Mesh)
    whole = jax.sharding.Mesh(
        mesh.devices.reshape(-1, *single.devices.shape), (replicas.REPLICA, *single.axis_names)
    )
    sharding = NamedSharding(whole, target.sharding.spec)
    return jax.ShapeDtypeStruct(target.shape, target.dtype, sharding=sharding)
