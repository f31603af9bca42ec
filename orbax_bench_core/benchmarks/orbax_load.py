"""Load of an existing Orbax checkpoint."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.support.existing import find_reference, measure_load
from orbax_bench_core.benchmarks.support.load_options import LoadOptions
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrbaxLoadOptions(LoadOptions):
    """Options of `orbax_load`.

    Attributes:
        checkpoint_path: The checkpoint to load, or one item of it, written by Orbax v0 or v1; null
            takes that of the checkpoint_config, and saves data that were generated first.
        use_colocated_python: On Pathways, have the hosts of the devices read.
    """

    use_colocated_python: Sweepable[bool] = False

    def orbax_context(self) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax.checkpoint import v1 as ocp

        from orbax_bench_core.state import orbax_api, require_pathways

        context = orbax_api.make_context(
            use_load_and_broadcast=self.use_load_and_broadcast,
            read_concurrent_bytes=self.read_concurrent_bytes,
        )
        if not self.use_colocated_python:
            return context
        require_pathways("use_colocated_python: true")
        colocated = orbax_api.make_colocated_context().pathways_options
        return ocp.Context(context=context, pathways_options=colocated)


@benchmark_options(OrbaxLoadOptions)
class OrbaxLoad(BenchmarksGenerator[OrbaxLoadOptions]):
    """Measures `load` of an existing checkpoint.

    What was loaded is compared with the digest that was recorded with the checkpoint or that an
    earlier run kept, and with the checkpoint_config's data if they were generated. Where there is
    none of them, two loads of the same bytes are compared, which is not called verified.
    """

    def test_fn(self, context: TestContext[OrbaxLoadOptions]) -> TestResult:
        """Runs one load."""
        from orbax_bench_core.state import orbax_api

        metrics, options = Metrics(), context.options
        loading = options.orbax_context()
        reference = find_reference(
            context,
            options.checkpoint_path,
            option="checkpoint_path",
            saving=orbax_api.make_context(),
        )
        target = options.target(reference)
        with loading:
            restored = measure_load(metrics, context, reference, target)
            options.check(context, reference, restored)
        return TestResult(metrics=metrics, inventory_path=reference.inventory_path)
