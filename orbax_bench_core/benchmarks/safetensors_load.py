"""Load of a checkpoint in the safetensors format, as model hubs offer them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.existing import Reference, describe, measure_load
from orbax_bench_core.benchmarks.support.load_options import LoadOptions
from orbax_bench_core.benchmarks.support.safetensors import write_arrays
from orbax_bench_core.files import absolute
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp

_MIB = 2**20


@dataclasses.dataclass(frozen=True, kw_only=True)
class SafetensorsLoadOptions(LoadOptions):
    """Options of `safetensors_load`.

    Attributes:
        checkpoint_path: A `.safetensors` file or a directory of them; null writes the
            checkpoint_config's data first.
        use_load_and_broadcast: Orbax's loader of this format has no broadcast, so true is refused.
        safetensors_max_over_read_ratio: Most bytes read per byte needed when neighbouring ranges
            are read as one; null takes the loader's own choice.
        safetensors_read_chunk_mb: Size of one read, in MiB; null takes the loader's own choice.
        enable_xprof: Capture a profiler trace, as enable_trace does.
    """

    safetensors_max_over_read_ratio: Sweepable[float | None] = None
    safetensors_read_chunk_mb: Sweepable[float | None] = None
    enable_xprof: Sweepable[bool] = False

    def orbax_context(self) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax.checkpoint import v1 as ocp

        from orbax_bench_core.state import orbax_api

        if not hasattr(ocp.options, "SafetensorsOptions"):
            raise UnmetNeed("safetensors_load needs orbax-checkpoint >= 0.12.8")
        if self.use_load_and_broadcast:
            raise UnmetNeed(
                "use_load_and_broadcast: true needs a loader that broadcasts; Orbax's loader of "
                "safetensors has every process read what it needs"
            )
        chunk = self.safetensors_read_chunk_mb
        return ocp.Context(
            context=orbax_api.make_context(read_concurrent_bytes=self.read_concurrent_bytes),
            checkpoint_layout=ocp.options.CheckpointLayout.SAFETENSORS,
            safetensors_options=ocp.options.SafetensorsOptions(
                max_over_read_ratio=self.safetensors_max_over_read_ratio,
                read_chunk_bytes=None if chunk is None else int(chunk * _MIB),
            ),
        )


@benchmark_options(SafetensorsLoadOptions)
class SafetensorsLoad(BenchmarksGenerator[SafetensorsLoadOptions]):
    """Measures `load` of a safetensors checkpoint.

    What was loaded is compared as in `orbax_load`. `orbax-bench sharding` writes the sharding
    file of a model.
    """

    def test_fn(self, context: TestContext[SafetensorsLoadOptions]) -> TestResult:
        """Runs one load."""
        from orbax_bench_core.state import Location

        metrics, options = Metrics(), context.options
        path = options.checkpoint_path
        own = path is None
        if path is None:
            if context.pytree is None:
                raise UnmetNeed(
                    "there is nothing to load: give checkpoint_path, or a checkpoint_config to be "
                    "written first"
                )
            path = str(context.path / "model")
            write_arrays(context.path / "model", context.pytree)
        with options.orbax_context():
            location = Location(absolute(path), None)
            reference = Reference(location, describe(path, location), own)
            target = options.target(reference)
            restored = measure_load(metrics, context, reference, target)
            options.check(context, reference, restored)
        return TestResult(metrics=metrics, inventory_path=reference.inventory_path)
