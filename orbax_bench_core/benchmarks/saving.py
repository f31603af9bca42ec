"""How every benchmark that saves measures a save."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    """Saves once and measures `save_blocking`, `save_background` and `save`, their whole.

    Where the suite asks for durability also `save_durable`, until everything is on stable storage.
    A save that is not asynchronous has no `save_background`. Call it with an active `ocp.Context`.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Where the checkpoint goes.
        tree: What is saved; its arrays are made ready before the clock starts.
        asynchronous: Whether to save in the background.
        collectors: What measures each operation.
        meanwhile: Entered as the background part begins, left the moment it has ended. It is inside
            the clock, so it must cost nothing to speak of.
    """
    import jax

    from orbax_bench_core.state import orbax_api
    from orbax_bench_core.state.size import tree_bytes

    num_bytes = tree_bytes(tree)
    jax.block_until_ready(tree)
    with contextlib.ExitStack() as until_durable:
        if context.durable:
            until_durable.enter_context(
                metrics.measure("save_durable", collectors, num_bytes=num_bytes)
            )
        with metrics.measure("save", collectors, num_bytes=num_bytes):
            with metrics.measure("save_blocking", collectors):
                if asynchronous:
                    response = orbax_api.save_async(path, tree)
                else:
                    orbax_api.save(path, tree)
            if asynchronous:
                with (
                    metrics.measure("save_background", collectors),
                    meanwhile or contextlib.nullcontext(),
                ):
                    response.result()
        if context.durable:
            context.make_durable(path)
