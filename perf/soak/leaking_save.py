"""A save with a planted leak, for real soaks whose answer is known."""

import dataclasses
from typing import Final

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics

_KEPT: Final[list[bytearray]] = []


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeakingSaveOptions(authoring.BenchmarkOptions):
    """Options of the save.

    Attributes:
        leak_mib: MiB that the process keeps of every save; 0 plants nothing.
    """

    leak_mib: authoring.Sweepable[float] = 0.0


@authoring.benchmark_options(LeakingSaveOptions)
class LeakingSave(authoring.BenchmarksGenerator[LeakingSaveOptions]):
    """Measures `save` of Orbax, in the background as a whole, and keeps memory of each."""

    def test_fn(self, context: authoring.TestContext[LeakingSaveOptions]) -> authoring.TestResult:
        """Saves once."""
        from orbax.checkpoint import v1 as ocp

        metrics = Metrics()
        with metrics.measure("save"):
            ocp.save_async(context.path / "ckpt", context.pytree).result()
            leaked = int(context.options.leak_mib * 2**20)
            _KEPT.append(bytearray(b"\1") * leaked)  # written to, so that it is resident
        return authoring.TestResult(metrics=metrics)
