"""Load of a part of a checkpoint, such as its parameters only."""

from __future__ import annotations

import dataclasses

from orbax_bench_core.authoring import (
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    benchmark_options,
)
from orbax_bench_core.measure import Metrics


# What a suite may sweep. Keep JAX and Orbax out of the top of the module, and listing a suite's
# points stays fast.
@dataclasses.dataclass(frozen=True, kw_only=True)
class PartialLoadOptions(BenchmarkOptions):
    """Options of `PartialLoad`.

    Attributes:
        part: Name of the branch at the top of the tree that is loaded.
    """

    part: str | list[str] = "params"


@benchmark_options(PartialLoadOptions)
class PartialLoad(BenchmarksGenerator):
    """Measures `load_all` and `load_part`."""

    def test_fn(self, context: TestContext) -> TestResult:
        import jax
        from orbax.checkpoint import v1 as ocp

        metrics, options = Metrics(), context.options
        assert isinstance(options, PartialLoadOptions)
        path = context.path / "ckpt"
        ocp.save(path, context.pytree)  # outside any `measure`: not what this is about
        everything = jax.tree.map(ocp.arrays.to_shape_dtype_struct, context.pytree)
        part = {options.part: everything[options.part]}

        # Both loads start from the page cache that the suite asks for.
        context.prepare_load("load_all", path)
        with metrics.measure("load_all", num_bytes=_bytes(context.pytree)):
            # Without block_until_ready, work that JAX has only begun would not be in the time.
            whole = jax.block_until_ready(ocp.load(path, everything))
        context.verify(whole)  # also outside the clock

        orbax = ocp.Context()
        orbax.pytree.loading.partial_load = True
        context.prepare_load("load_part", path)
        with orbax, metrics.measure("load_part", num_bytes=_bytes(part)):
            loaded = jax.block_until_ready(ocp.load(path, part))
        context.verify(loaded, {options.part: context.pytree[options.part]})
        return TestResult(metrics=metrics)


def _bytes(tree: object) -> int:
    import jax

    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
