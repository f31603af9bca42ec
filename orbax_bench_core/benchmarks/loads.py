"""Loads of existing checkpoints: those of Orbax, and those in the safetensors format."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import existing, safetensors
from orbax_bench_core.benchmarks.support.options import (
    MeasuringOptions,
    await_all_hosts,
    gib_to_bytes,
    later,
)
from orbax_bench_core.benchmarks.support.replicas import REPLICA, check_broadcast, check_replicas
from orbax_bench_core.files import absolute
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions(MeasuringOptions):
    """Options of a load.

    Attributes:
        checkpoint_path: The checkpoint to load; null takes that of the checkpoint_config, and saves
            data that were generated first.
        sharding_config_path: JSON file with the target sharding of each leaf, over all devices;
            null replicates every array on all devices.
        capture_digests_path: Directory in which to keep the digest of what was loaded. In the
            checkpoint's own directory it is what later loads are compared with.
        reference_digests_path: Directory with such a digest, to compare with what is loaded; give
            this or capture_digests_path.
        use_load_and_broadcast: Load on one replica and broadcast to the others.
        restore_concurrent_gb: Most data in flight while loading, in GiB; null sets no limit.
        load_async: Load in the background, which Orbax 0.12 does of safetensors alone.
    """

    checkpoint_path: interface.Sweepable[str | None] = None
    sharding_config_path: interface.Sweepable[str | None] = None
    capture_digests_path: str | None = None
    reference_digests_path: str | None = None
    use_load_and_broadcast: interface.Sweepable[bool] = False
    restore_concurrent_gb: interface.Sweepable[float | None] = None
    load_async: interface.Sweepable[bool] = later(False)

    def __post_init__(self) -> None:
        if self.capture_digests_path is not None and self.reference_digests_path is not None:
            raise ValueError("give capture_digests_path or reference_digests_path, not both")

    def target(self, reference: existing.Reference) -> Any:
        """Returns the target to hand to `load`."""
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        from orbax_bench_core.state import check_dtype, with_targets

        file, devices = self.sharding_config_path, jax.devices()
        if file is not None:
            targets = reference.targets(file, devices)
        else:
            # To broadcast, Orbax wants replicas that are whole processes, where there are several.
            replicas = jax.process_count() if jax.process_count() > 1 else len(devices)
            mesh = Mesh(np.array(devices).reshape(replicas, -1), (REPLICA, "data"))
            everywhere = NamedSharding(mesh, PartitionSpec())
            for name, leaf in reference.arrays.items():
                check_dtype(name, np.dtype(leaf.dtype).name)
            targets = {
                name: jax.ShapeDtypeStruct(tuple(leaf.shape), leaf.dtype, sharding=everywhere)
                for name, leaf in reference.arrays.items()
            }
        if self.use_load_and_broadcast:
            check_broadcast(targets)
        return with_targets(reference.described, targets)

    def measure(
        self,
        metrics: Metrics,
        context: interface.TestContext[Any],
        reference: existing.Reference,
        target: Any,
    ) -> Any:
        """Measures one load, and returns what was loaded."""
        return existing.measure_load(
            metrics, context, reference, target, asynchronous=bool(self.load_async)
        )

    def check(
        self, context: interface.TestContext, reference: existing.Reference, restored: Any
    ) -> None:
        """Compares what was loaded, and keeps its digest; call it outside any measured block."""
        # It is compared first: a load that is not what was recorded replaces no digest, and none is
        # compared with what it has written itself.
        from orbax_bench_core.state import (
            DIGESTS_FILE,
            StateError,
            digest,
            record_digest,
            recorded_digest,
        )

        if self.use_load_and_broadcast and context.verifier is not None:
            check_replicas(restored)
        # Verification may delete what was loaded.
        found = None if self.capture_digests_path is None else digest(restored)
        known, folder = None, self.reference_digests_path
        if folder is not None:
            known = recorded_digest(absolute(folder))
            if known is None:
                raise StateError(
                    f"reference_digests_path {folder!r} holds no {DIGESTS_FILE}; run once with "
                    "capture_digests_path to write it"
                )
        existing.verify(context, reference, restored, known)
        if self.capture_digests_path is not None and found is not None:
            await_all_hosts("capture_digests")
            record_digest(absolute(self.capture_digests_path), found)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrbaxLoadOptions(LoadOptions):
    """Options of `orbax_load`.

    Attributes:
        checkpoint_path: The checkpoint to load, or one item of it, written by Orbax v0 or v1; null
            takes that of the checkpoint_config, and saves data that were generated first.
        use_colocated_python: On Pathways, have the hosts of the devices read.
    """

    use_colocated_python: interface.Sweepable[bool] = False

    def orbax_context(self) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax.checkpoint import v1 as ocp

        from orbax_bench_core.state import orbax_api, require_pathways

        context = orbax_api.make_context(
            use_load_and_broadcast=self.use_load_and_broadcast,
            read_concurrent_bytes=gib_to_bytes(self.restore_concurrent_gb),
        )
        if not self.use_colocated_python:
            return context
        require_pathways("use_colocated_python: true")
        colocated = orbax_api.make_colocated_context().pathways_options
        return ocp.Context(context=context, pathways_options=colocated)


@interface.benchmark_options(OrbaxLoadOptions)
class OrbaxLoad(interface.BenchmarksGenerator[OrbaxLoadOptions]):
    """Measures `load` of an existing checkpoint, with `load_async` also its `load_blocking`.

    What was loaded is compared with the digest that was recorded with the checkpoint or that an
    earlier run kept, and with the checkpoint_config's data if they were generated. Where there is
    none of them, two loads of the same bytes are compared, which is not called verified.
    """

    def test_fn(self, context: interface.TestContext[OrbaxLoadOptions]) -> interface.TestResult:
        """Runs one load."""
        from orbax_bench_core.state import orbax_api

        metrics, options = Metrics(), context.options
        loading = options.orbax_context()
        reference = existing.find_reference(
            context,
            options.checkpoint_path,
            option="checkpoint_path",
            saving=orbax_api.make_context(),
        )
        target = options.target(reference)
        with loading:
            restored = options.measure(metrics, context, reference, target)
            options.check(context, reference, restored)
        return interface.TestResult(metrics=metrics, inventory_path=reference.inventory_path)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SafetensorsLoadOptions(LoadOptions):
    """Options of `safetensors_load`.

    Attributes:
        checkpoint_path: A `.safetensors` file or a directory of them, of which an index says what
            is loaded; null writes the checkpoint_config's data first.
        use_load_and_broadcast: Orbax's loader of this format has no broadcast, so true is refused.
        safetensors_max_over_read_ratio: Most bytes read per byte needed when neighbouring ranges
            are read as one; null takes the loader's own choice.
        safetensors_read_chunk_mb: Size of one read, in MiB; null takes the loader's own choice.
        enable_xprof: Capture a profiler trace, as enable_trace does.
    """

    safetensors_max_over_read_ratio: interface.Sweepable[float | None] = None
    safetensors_read_chunk_mb: interface.Sweepable[float | None] = None
    enable_xprof: interface.Sweepable[bool] = False

    def orbax_context(self) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax.checkpoint import v1 as ocp

        from orbax_bench_core.state import orbax_api

        if not hasattr(ocp.options, "SafetensorsOptions"):
            raise interface.UnmetNeed("safetensors_load needs orbax-checkpoint >= 0.12.8")
        if self.use_load_and_broadcast:
            raise interface.UnmetNeed(
                "use_load_and_broadcast: true needs a loader that broadcasts; Orbax's loader of "
                "safetensors has every process read what it needs"
            )
        chunk = self.safetensors_read_chunk_mb
        return ocp.Context(
            context=orbax_api.make_context(
                read_concurrent_bytes=gib_to_bytes(self.restore_concurrent_gb)
            ),
            checkpoint_layout=ocp.options.CheckpointLayout.SAFETENSORS,
            safetensors_options=ocp.options.SafetensorsOptions(
                max_over_read_ratio=self.safetensors_max_over_read_ratio,
                read_chunk_bytes=None if chunk is None else int(chunk * 2**20),
            ),
        )


@interface.benchmark_options(SafetensorsLoadOptions)
class SafetensorsLoad(interface.BenchmarksGenerator[SafetensorsLoadOptions]):
    """Measures `load` of a safetensors checkpoint, with `load_async` also its `load_blocking`.

    What was loaded is compared as in `orbax_load`. `orbax-bench sharding` writes the sharding
    file of a model.
    """

    def test_fn(
        self, context: interface.TestContext[SafetensorsLoadOptions]
    ) -> interface.TestResult:
        """Runs one load."""
        from orbax_bench_core.inventory import Location
        from orbax_bench_core.state import describe

        metrics, options = Metrics(), context.options
        path = options.checkpoint_path
        own = path is None
        left_out: tuple[str, ...] = ()
        if path is None:
            if context.pytree is None:
                raise interface.UnmetNeed(
                    "there is nothing to load: give checkpoint_path, or a checkpoint_config to be "
                    "written first"
                )
            place = context.path / "model"
            safetensors.write_arrays(place, context.pytree)
        else:
            place, left_out = safetensors.named_files(path, context.path / "named")
        with options.orbax_context():
            location = Location(place, form="safetensors")
            described = describe(path or str(place), location)
            for name in left_out:
                del described[name]
            reference = existing.Reference(location, described, own)
            target = options.target(reference)
            restored = options.measure(metrics, context, reference, target)
            options.check(context, reference, restored)
        return interface.TestResult(metrics=metrics, inventory_path=reference.inventory_path)
