"""What benchmarks of Orbax's v0 interface share: saves in two parts, and what to restore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from orbax_bench_core.benchmarks.saving import measure_parts

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.authoring import TestContext
    from orbax_bench_core.measure import Metrics


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
    """Saves once and measures it as `measure_parts` does, where a save has no result to wait for.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Where the checkpoint goes.
        tree: What is saved; its arrays are made ready before the clock starts.
        begin: The call that blocks training.
        finish: Waits for what goes on in the background; None if nothing does.
        collectors: What measures each operation; None for the default.
    """
    import jax

    from orbax_bench_core.state.size import tree_bytes

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


def restore_target(tree: Any) -> Any:
    """Returns shape, dtype and sharding of each array of a tree; other leaves stay.

    Args:
        tree: What was saved; its arrays may be gone by the time of the restore.
    """
    import jax

    def of(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array):
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        return leaf

    return jax.tree.map(of, tree)
