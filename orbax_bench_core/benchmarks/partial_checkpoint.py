"""Parts of a checkpoint: saved piece by piece, and loaded without the rest."""

import dataclasses
import functools
from typing import Any, Literal

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import dividing, saving
from orbax_bench_core.benchmarks.support.options import MeasuringOptions, delete, delete_if_scarce
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartialCheckpointOptions(MeasuringOptions):
    """Options of `partial_checkpoint`.

    Attributes:
        async_enabled: Save in the background; otherwise all of a save blocks.
        pieces: Into how many pieces of about the same bytes the tree is divided, which are saved
            one after the other with `partial.save` and made a checkpoint by `partial.finalize`;
            null saves the whole tree at once.
        loaded_share: Which share of the checkpoint's bytes `load_part` may load, more than 0 and at
            most 1: arrays in their order, as long as they fit.
        left_out_by: How a load is told what to leave: a `placeholder` in the place of each other
            leaf, or by its `absence` from the target, with the option partial_load.
    """

    async_enabled: interface.Sweepable[bool] = True
    pieces: interface.Sweepable[int | None] = 4
    loaded_share: interface.Sweepable[float] = 0.25
    left_out_by: interface.Sweepable[Literal["placeholder", "absence"]] = "placeholder"

    def __post_init__(self) -> None:
        share, pieces = self.loaded_share, self.pieces
        if isinstance(share, (int, float)) and not 0 < share <= 1:
            raise ValueError(f"loaded_share must be more than 0 and at most 1, got {share!r}")
        if isinstance(pieces, int) and pieces < 1:
            raise ValueError(f"pieces must be 1 or more, or null, got {pieces!r}")


@interface.benchmark_options(PartialCheckpointOptions)
class PartialCheckpoint(interface.BenchmarksGenerator[PartialCheckpointOptions]):
    """Measures `save_blocking`, `save_background`, `save`, `load` and `load_part`.

    With `pieces` also `save_piece`, until the save of a piece returns, and `finalize`, which are
    parts of the save. Each piece begins when the one before is written; `save_blocking` is that of
    the first where saves go on in the background. `load` loads the whole and `load_part` a share of
    its bytes; the metric `load_raw_gb` says of each how much storage was read. A save that is not
    asynchronous has no `save_background`. What was loaded is verified outside the clock.
    """

    def test_fn(
        self, context: interface.TestContext[PartialCheckpointOptions]
    ) -> interface.TestResult:
        """Runs one save, one load of the whole, and one of a part."""
        import jax

        from orbax_bench_core.state import digest, named_leaves, orbax_api, tree_bytes

        metrics, options, path = Metrics(), context.options, context.path / "ckpt"
        tree = dividing.require_dicts(context, "partial_checkpoint")
        num_bytes, target = tree_bytes(tree), saving.load_target(tree)
        names = _chosen(tree, options.loaded_share * num_bytes)
        part = dividing.only(tree, names)
        expected, part_bytes = digest(part), tree_bytes(part)
        if options.left_out_by == "placeholder":
            leaves, structure = jax.tree.flatten(target)
            named = zip(named_leaves(tree), leaves, strict=True)
            filled = [
                leaf if name in names else orbax_api.placeholder() for (name, _), leaf in named
            ]
            wanted = jax.tree.unflatten(structure, filled)
        else:
            wanted = dividing.only(target, names)

        def load(operation: str, target: Any, size: int) -> Any:
            asked = functools.partial(orbax_api.load, path, target)
            return saving.measure_load(metrics, context, operation, path, asked, num_bytes=size)

        with orbax_api.make_context():
            _measure_save(metrics, context, path, tree)
            delete_if_scarce(tree)
            restored = load("load", target, num_bytes)
            context.verify(restored)
            delete(restored)
        loading = orbax_api.make_context()
        if options.left_out_by == "absence":
            orbax_api.load_what_is_given(loading)
        with loading:
            loaded = load("load_part", wanted, part_bytes)
        context.verify(dividing.only(loaded, names), expected, against="saved")
        metrics.notes["loaded part"] = [f"{part_bytes} of {num_bytes} bytes"]
        return interface.TestResult(metrics=metrics)


def _chosen(tree: Any, most_bytes: float) -> set[str]:
    """Returns the names of arrays, in their order, that have so many bytes together at most."""
    from orbax_bench_core.state import named_leaves, tree_bytes

    chosen: set[str] = set()
    sizes = [(name, size) for name, leaf in named_leaves(tree) if (size := tree_bytes(leaf))]
    for name, size in sizes:
        if size <= most_bytes:
            chosen.add(name)
            most_bytes -= size
    if not chosen:
        raise interface.UnmetNeed(
            f"partial_checkpoint finds no array of at most {int(most_bytes)} bytes to load alone: "
            "set loaded_share higher, or add a small array to the checkpoint_config"
        )
    return chosen


def _measure_save(
    metrics: Metrics, context: interface.TestContext[PartialCheckpointOptions], path: Any, tree: Any
) -> None:
    """Saves the tree, whole or in pieces, and measures it as `measure_parts` does."""
    import jax

    from orbax_bench_core.state import orbax_api, tree_bytes

    options = context.options
    if options.pieces is None:
        save, save_async = orbax_api.save, orbax_api.save_async
        saving.measure_save_by(metrics, context, path, tree, save, save_async)
        return
    pieces = dividing.divided(tree, options.pieces, "partial_checkpoint")
    save_piece = orbax_api.save_piece_async if options.async_enabled else orbax_api.save_piece

    def begin(piece: Any) -> Any:
        with metrics.measure("save_piece", num_bytes=tree_bytes(piece)):
            return save_piece(path, piece)

    def finish(begun: Any) -> None:
        # Orbax 0.12.8 lets a piece begin while the one before is being written, and both fail.
        for piece in pieces[1:]:
            if begun is not None:
                begun.result()
            begun = begin(piece)
        if begun is not None:
            begun.result()
        with metrics.measure("finalize"):
            orbax_api.finalize_pieces(path)

    jax.block_until_ready(tree)
    saving.measure_parts(
        *(metrics, context, path),
        lambda: begin(pieces[0]) if options.async_enabled else finish(begin(pieces[0])),
        finish if options.async_enabled else None,
        num_bytes=tree_bytes(tree),
        collectors=options.collectors,
    )
