"""Save and load with a budget for staging on the host, and with another dtype on storage."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import gib_to_bytes
from orbax_bench_core.benchmarks.support.saving import measure_round_trip
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp

_DTYPES = ("bfloat16", "float16", "float32", "float64")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StagedSaveOptions(SaveRestoreOptions):
    """Options of `staged_save`, beside those of `save_restore`.

    Attributes:
        device_host_concurrent_gb: Most data on its way from device to storage at a time, in GiB on
            each host; null sets no limit. Below the size of the checkpoint a save in the background
            blocks until enough of it is written.
        save_dtype: Dtype of floating-point arrays on storage, such as bfloat16 for a training in
            float32; null stores them as they are. A load gives them their own dtype back, with the
            precision that storage has left.
    """

    device_host_concurrent_gb: Sweepable[float | None] = None
    save_dtype: Sweepable[str | None] = None

    def __post_init__(self) -> None:
        """Refuses what is no dtype of floating-point numbers."""
        known = self.save_dtype is None or self.save_dtype in _DTYPES
        if not known and not isinstance(self.save_dtype, list):
            raise ValueError(
                f"save_dtype must be one of {', '.join(_DTYPES)}, or null; got {self.save_dtype!r}"
            )

    def orbax_context(self, **more: Any) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax_bench_core.state.orbax_api import store_floating_as

        budget = gib_to_bytes(self.device_host_concurrent_gb)
        context = super().orbax_context(transfer_concurrent_bytes=budget, **more)
        if self.save_dtype is not None:
            store_floating_as(context, str(self.save_dtype))
        return context


@benchmark_options(StagedSaveOptions)
class StagedSave(BenchmarksGenerator[StagedSaveOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `load`.

    As `save_restore`, whose options it has too. What was loaded is compared, outside the clock,
    with the arrays as storage can hold them: cast to `save_dtype` and back.
    """

    def test_fn(self, context: TestContext[StagedSaveOptions]) -> TestResult:
        """Runs one save and one load."""
        metrics, options = Metrics(), context.options
        tree = require_tree(context, "staged_save")
        expected = None
        if options.save_dtype is not None and context.verifier is not None:
            expected = _as_stored(tree, str(options.save_dtype))
        with options.orbax_context():
            restored = measure_round_trip(
                metrics,
                context,
                tree,
                asynchronous=options.async_enabled,
                collectors=options.collectors,
            )
        context.verify(restored, expected, against="saved")
        return TestResult(metrics=metrics)


def _as_stored(tree: Any, dtype: str) -> Any:
    """Returns the digest of a tree whose floating-point arrays were cast to a dtype and back."""
    import jax
    import jax.numpy as jnp

    from orbax_bench_core.state import digest

    def of(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        return leaf.astype(jnp.dtype(dtype)).astype(leaf.dtype)

    return digest(jax.tree.map(of, tree))
