"""Saves of the checkpoint manager in the background; one host writes its arrays late on request."""

import dataclasses
import time

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint._src.serialization import jax_array_handlers

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class LateHostOptions(authoring.BenchmarkOptions):
    late_host: int | None = None


@authoring.benchmark_options(LateHostOptions)
class LateHost(authoring.BenchmarksGenerator):
    def test_fn(self, context):
        metrics, log = Metrics(), jax_array_handlers._log_io_metrics

        def late(*args, **kwargs):
            time.sleep(0.3)
            return log(*args, **kwargs)

        if context.options.late_host == jax.process_index():
            jax_array_handlers._log_io_metrics = late
        try:
            folder = context.path / "checkpoints"
            with ocp.CheckpointManager(folder) as manager, metrics.measure("save"):
                manager.save(0, args=ocp.args.StandardSave(context.pytree))
                manager.wait_until_finished()
        finally:
            jax_array_handlers._log_io_metrics = log
        return authoring.TestResult(metrics=metrics)
