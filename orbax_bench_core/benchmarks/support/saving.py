"""Operations of a save: blocking part, background part, their whole, and durability."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from orbax_bench_core.benchmarks.support.options import delete_if_scarce

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.authoring import TestContext
    from orbax_bench_core.measure import Metrics


def measure_save(
    metrics: Metrics,
    context: TestContext,
    path: epath.Path,
    tree: Any,
    *,
    asynchronous: bool,
    collectors: Sequence[str],
    meanwhile: contextlib.AbstractContextManager[object] | None = None,
) -> None:
    """Saves once with Orbax, and measures it as `measure_parts` does.

    Call it with an active `ocp.Context`.
    """
    import jax

    from orbax_bench_core.state import orbax_api, tree_bytes

    jax.block_until_ready(tree)
    save = orbax_api.save_async if asynchronous else orbax_api.save
    measure_parts(
        metrics,
        context,
        path,
        lambda: save(path, tree),
        await_result if asynchronous else None,
        num_bytes=tree_bytes(tree),
        collectors=collectors,
        meanwhile=meanwhile,
    )


def measure_round_trip(
    metrics: Metrics,
    context: TestContext,
    tree: Any,
    *,
    asynchronous: bool,
    collectors: Sequence[str],
) -> Any:
    """Saves once as `measure_save` does, measures one `load`, and returns what was loaded.

    Call it with an active `ocp.Context`. Outputs are ready before the load stops.
    """
    import jax

    from orbax_bench_core.state import orbax_api, tree_bytes

    path, num_bytes, target = context.path / "ckpt", tree_bytes(tree), load_target(tree)
    measure_save(metrics, context, path, tree, asynchronous=asynchronous, collectors=collectors)
    delete_if_scarce(tree)
    context.prepare_load("load", path)
    with metrics.measure("load", collectors, num_bytes=num_bytes):
        return jax.block_until_ready(orbax_api.load(path, target))


def measure_parts(
    metrics: Metrics,
    context: TestContext,
    path: epath.Path,
    begin: Callable[[], Any],
    finish: Callable[[Any], object] | None,
    *,
    num_bytes: int,
    collectors: Sequence[str] | None,
    meanwhile: contextlib.AbstractContextManager[object] | None = None,
) -> None:
    """Measures `save_blocking`, `save_background` and `save`, their whole, of any framework.

    Where the suite asks for durability also `save_durable`, until everything is on stable storage.
    A save of which nothing goes on in the background has no `save_background`.
    """
    with contextlib.ExitStack() as until_durable:
        if context.durable:
            until_durable.enter_context(
                metrics.measure("save_durable", collectors, num_bytes=num_bytes)
            )
        with metrics.measure("save", collectors, num_bytes=num_bytes):
            with metrics.measure("save_blocking", collectors):
                begun = begin()
            if finish is not None:
                with (
                    metrics.measure("save_background", collectors),
                    meanwhile or contextlib.nullcontext(),
                ):
                    finish(begun)
        if context.durable:
            context.make_durable(path)


def await_result(begun: Any) -> None:
    """Waits for a save in the background, of Orbax or PyTorch: the `finish` of `measure_parts`."""
    begun.result()


def load_target(tree: Any) -> Any:
    """Shape, dtype and sharding of each array of a tree, and what stands for each scalar."""
    import jax

    from orbax_bench_core.state import orbax_api

    def of(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        return orbax_api.scalar_target(leaf)

    return jax.tree.map(of, tree)
