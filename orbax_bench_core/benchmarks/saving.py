"""How every benchmark that saves measures a save."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
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
    """Saves once with Orbax, and measures it as `measure_parts` does.

    Call it with an active `ocp.Context`.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Where the checkpoint goes.
        tree: What is saved; its arrays are made ready before the clock starts.
        asynchronous: Whether to save in the background.
        collectors: What measures each operation.
        meanwhile: As for `measure_parts`.
    """
    import jax

    from orbax_bench_core.state import orbax_api
    from orbax_bench_core.state.size import tree_bytes

    jax.block_until_ready(tree)
    save = orbax_api.save_async if asynchronous else orbax_api.save
    measure_parts(
        metrics,
        context,
        path,
        lambda: save(path, tree),
        num_bytes=tree_bytes(tree),
        asynchronous=asynchronous,
        collectors=collectors,
        meanwhile=meanwhile,
    )


def measure_parts(
    metrics: Metrics,
    context: TestContext,
    path: epath.Path,
    save: Callable[[], Any],
    *,
    num_bytes: int,
    asynchronous: bool,
    collectors: Sequence[str],
    meanwhile: contextlib.AbstractContextManager[object] | None = None,
) -> None:
    """Measures `save_blocking`, `save_background` and `save`, their whole, of any framework.

    Where the suite asks for durability also `save_durable`, until everything is on stable storage.
    A save that is not asynchronous has no `save_background`.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Where the checkpoint goes.
        save: Saves; what is saved is ready. When asynchronous it returns something whose `result()`
            waits until the checkpoint is complete.
        num_bytes: Bytes of all arrays, replicas once.
        asynchronous: Whether `save` saves in the background.
        collectors: What measures each operation.
        meanwhile: Entered as the background part begins, left the moment it has ended. It is inside
            the clock, so it must cost nothing to speak of.
    """
    with contextlib.ExitStack() as until_durable:
        if context.durable:
            until_durable.enter_context(
                metrics.measure("save_durable", collectors, num_bytes=num_bytes)
            )
        with metrics.measure("save", collectors, num_bytes=num_bytes):
            with metrics.measure("save_blocking", collectors):
                response = save()
            if asynchronous:
                with (
                    metrics.measure("save_background", collectors),
                    meanwhile or contextlib.nullcontext(),
                ):
                    response.result()
        if context.durable:
            context.make_durable(path)
