"""Measured saves: blocking part, background part, their whole, and steps of a manager."""

from __future__ import annotations

import contextlib
import inspect
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.interface import UnmetNeed, VerificationError

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.interface import TestContext
    from orbax_bench_core.measure import Metrics

_LOSS: Final = "loss"
LOSS_OF: Final = operator.itemgetter(_LOSS)
"""By what a manager finds the best checkpoints: a function of the metrics of `loss_at`."""


def loss_at(step: int) -> dict[str, float]:
    """Returns metrics of a step whose loss falls, and rises at times, as in a training."""
    return {_LOSS: 1 / (step + 1) + 0.4 * (step % 2)}


def best_steps(saved: Iterable[int], best_fn: str, number: int | None) -> list[int]:
    """Returns so many steps of the smallest loss (`min`) or the largest (`max`); None takes all."""
    ranked = sorted(saved, key=lambda step: LOSS_OF(loss_at(step)), reverse=best_fn == "max")
    return ranked[:number]


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

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Folder of the checkpoint.
        begin: Saves as far as the caller has to wait for; its result goes to `finish`.
        finish: Waits for what goes on in the background; None if nothing does.
        num_bytes: Bytes of the arrays, which give the throughput.
        collectors: Keys of the collectors of each block; None takes the default ones.
        meanwhile: Context that is open during the background part, such as training.
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


def measure_save_by(
    metrics: Metrics,
    context: TestContext[Any],
    path: epath.Path,
    tree: Any,
    save: Callable[[epath.Path, Any], object],
    save_async: Callable[[epath.Path, Any], Any],
    *,
    meanwhile: contextlib.AbstractContextManager[object] | None = None,
) -> None:
    """Saves once by the function of Orbax that the option `async_enabled` asks for.

    It measures as `measure_parts` does, with the collectors of the options.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Folder of the checkpoint.
        tree: What is saved; its arrays are ready before the clock starts, and without the host
            copies of an earlier save.
        save: Saves and returns when it is done.
        save_async: Begins to save; its result has a `result()` that waits.
        meanwhile: Context that is open during the background part.
    """
    import jax

    from orbax_bench_core.state import tree_bytes, without_host_copies

    options = context.options
    tree = jax.block_until_ready(without_host_copies(tree))
    begin = save_async if options.async_enabled else save
    measure_parts(
        metrics,
        context,
        path,
        lambda: begin(path, tree),
        await_result if options.async_enabled else None,
        num_bytes=tree_bytes(tree),
        collectors=options.collectors,
        meanwhile=meanwhile,
    )


def measure_load(
    metrics: Metrics,
    context: TestContext[Any],
    operation: str,
    path: epath.Path,
    load: Callable[[], Any],
    *,
    num_bytes: int,
) -> Any:
    """Measures one load until its arrays are ready, and returns what was loaded.

    Args:
        metrics: Takes the samples.
        context: The repeat, which sets the page cache before.
        operation: Name of the block.
        path: Folder of the checkpoint.
        load: Loads it.
        num_bytes: Bytes of the arrays, which give the throughput.
    """
    import jax

    context.prepare_load(operation, path)
    with metrics.measure(operation, context.options.collectors, num_bytes=num_bytes):
        return jax.block_until_ready(load())


def await_result(begun: Any) -> None:
    """Waits for a save in the background, of Orbax or PyTorch: the `finish` of `measure_parts`."""
    begun.result()


def open_checkpoint_manager(
    directory: epath.Path, *, handlers: Mapping[str, Any] | None = None, **options: Any
) -> contextlib.closing[Any]:
    """Opens a `CheckpointManager`, to be closed whatever happens.

    Raises:
        UnmetNeed: The installed Orbax lacks an option that is set.
    """
    import orbax.checkpoint as ocp

    known = inspect.signature(ocp.CheckpointManagerOptions).parameters
    for name, value in options.items():
        if name not in known and value:
            raise UnmetNeed(
                f"{name}: {json.dumps(value)} needs a later Orbax: orbax-checkpoint "
                f"{ocp.__version__}, which is installed, has no CheckpointManagerOptions.{name}"
            )
    manager = ocp.CheckpointManager(
        directory,
        options=ocp.CheckpointManagerOptions(**{k: v for k, v in options.items() if k in known}),
        item_handlers=None if handlers is None else dict(handlers),
    )
    return contextlib.closing(manager)


def measure_step(
    metrics: Metrics,
    context: TestContext,
    manager: Any,
    step: int,
    tree: Any,
    arguments: Callable[[Any], Any],
    /,
    *,
    asynchronous: bool = True,
    **more: Any,
) -> bool:
    """Offers one step to a manager, with more arguments of its `save`, and measures the save.

    `arguments` makes the `args` of `save` of the tree, whose arrays keep no host copy of an earlier
    step.

    Returns:
        Whether the step was saved.
    """
    # A step that is saved gives the operations of `measure_two_part_save`, one that the manager's
    # policy passes over gives `skip`: a mean of both would say nothing of either.
    from orbax_bench_core.state import without_host_copies

    given = arguments(without_host_copies(tree))
    if not manager.should_save(step):
        with metrics.measure("skip"):
            saved = bool(manager.save(step, args=given, **more))
        manager.wait_until_finished()  # the policy may have changed its mind
        return saved
    measure_two_part_save(
        metrics,
        context,
        context.path,
        tree,
        begin=lambda: manager.save(step, args=given, **more),
        finish=manager.wait_until_finished if asynchronous else None,
    )
    return True


def measure_two_part_save(
    metrics: Metrics,
    context: TestContext,
    path: epath.Path,
    tree: Any,
    *,
    begin: Callable[[], object],
    finish: Callable[[], object] | None,
    collectors: Sequence[str] | None = None,
) -> None:
    """Saves once and measures as `measure_parts`, where a save has no result to wait for.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Folder of the checkpoint.
        tree: What is saved; its arrays are ready before the clock starts.
        begin: Saves as far as the caller has to wait for.
        finish: Waits for the background part; None if there is none.
        collectors: Keys of the collectors of each block; None takes the default ones.
    """
    import jax

    from orbax_bench_core.state import tree_bytes

    jax.block_until_ready(tree)
    measure_parts(
        metrics,
        context,
        path,
        begin,
        None if finish is None else lambda _: finish(),
        num_bytes=tree_bytes(tree),
        collectors=collectors,
    )


def restore_target(tree: Any, of_other: Callable[[Any], Any] = lambda leaf: leaf) -> Any:
    """Returns shape, dtype and sharding of each array of a tree; other leaves stay."""
    import jax

    def of(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        return of_other(leaf)

    return jax.tree.map(of, tree)


def load_target(tree: Any) -> Any:
    """Returns the target with which Orbax's v1 interface loads a tree, scalars too."""
    from orbax_bench_core.state import orbax_api

    return restore_target(tree, orbax_api.scalar_target)


def pytree_restore(target: Any, **item: Any) -> Any:
    """Returns the arguments for a v0 handler's tree; `item=target` if it needs the tree itself."""
    import orbax.checkpoint as ocp

    arguments = ocp.checkpoint_utils.construct_restore_args(target)
    return ocp.args.PyTreeRestore(restore_args=arguments, **item)


def check_steps(manager: Any, expected: list[int]) -> None:
    """Checks that a manager holds these steps and no other."""
    found = sorted(manager.all_steps())
    if found != expected:
        raise VerificationError(f"the manager should hold the steps {expected}; it holds {found}")
