"""What the benchmarks of Orbax's v0 `CheckpointManager` share."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.authoring import TestContext
    from orbax_bench_core.measure import Metrics


def open_manager(
    directory: epath.Path, *, handlers: Mapping[str, Any] | None = None, **options: Any
) -> contextlib.closing[Any]:
    """Opens a `CheckpointManager`, to be closed whatever happens.

    Args:
        directory: Where the steps go.
        handlers: Handler of each item; None takes those that the arguments of a save imply.
        **options: Fields of `CheckpointManagerOptions`.
    """
    import orbax.checkpoint as ocp

    manager = ocp.CheckpointManager(
        directory,
        options=ocp.CheckpointManagerOptions(**options),
        item_handlers=None if handlers is None else dict(handlers),
    )
    return contextlib.closing(manager)


def measure_step(
    metrics: Metrics,
    context: TestContext,
    manager: Any,
    step: int,
    *,
    tree: Any,
    arguments: Any,
    directory: epath.Path,
) -> bool:
    """Offers one step to a manager, and measures what it makes of it.

    A step that is saved gives the operations of `measure_two_part_save`, one that the manager's
    policy passes over gives `skip`: a mean of both would say nothing of either.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        manager: The manager; nothing goes on in its background.
        step: The training step.
        tree: The arrays that are saved; they are made ready before the clock starts.
        arguments: What the manager's `save` takes.
        directory: Where the manager keeps its steps.

    Returns:
        Whether the step was saved.
    """
    from orbax_bench_core.benchmarks.v0_saving import measure_two_part_save

    if not manager.should_save(step):
        with metrics.measure("skip"):
            saved = bool(manager.save(step, args=arguments))
        manager.wait_until_finished()  # the policy may have changed its mind
        return saved
    measure_two_part_save(
        metrics,
        context,
        directory,
        tree,
        begin=lambda: manager.save(step, args=arguments),
        finish=manager.wait_until_finished,
    )
    return True
