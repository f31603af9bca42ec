"""Several items in one checkpoint: trees, JSON and an object that saves itself, as trainers do."""

import dataclasses
import json
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Literal

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support import dividing, saving
from orbax_bench_core.benchmarks.support.options import (
    BoundedOptions,
    MeasuringOptions,
    await_all_hosts,
    delete,
    delete_if_scarce,
    later,
)
from orbax_bench_core.measure import Metrics

_CONFIG = {"model": "a name", "batch": 8, "mesh": {"data": 1}}
_POSITION = 17


class _Iterator:
    """Position in a data set, which each process saves itself: a `StatefulCheckpointable`."""

    def __init__(self, position: int) -> None:
        self.position = position

    async def save(self, directory: Any) -> Awaitable[None]:
        """Takes the position at once, and returns what writes it in the background."""
        position = self.position

        async def write() -> None:
            self._file(await directory.await_creation()).write_text(json.dumps(position))

        return write()

    async def load(self, directory: Any) -> Awaitable[None]:
        """Returns the object that reads the position in the background."""

        async def read() -> None:
            self.position = json.loads(self._file(directory).read_text())

        return read()

    def _file(self, directory: Any) -> Any:
        import jax

        return directory / f"process_{jax.process_index()}.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointablesOptions(BoundedOptions, MeasuringOptions):
    """Options of `checkpointables`.

    Attributes:
        async_enabled: Save in the background, with `save_checkpointables_async`; otherwise all of a
            save blocks.
        tree_items: Into how many trees of about the same bytes the checkpoint is divided, each of
            which is an item of its own, such as parameters and state of the optimizer.
        deletion: Delete the first tree, and then the checkpoint: `blocking`, or in the
            `background`; null deletes nothing.
    """

    async_enabled: interface.Sweepable[bool] = True
    tree_items: interface.Sweepable[int] = 2
    deletion: interface.Sweepable[Literal["blocking", "background"] | None] = later(None)

    least = {"tree_items": 1}


@interface.benchmark_options(CheckpointablesOptions)
class Checkpointables(interface.BenchmarksGenerator[CheckpointablesOptions]):
    """Measures `save_blocking`, `save_background`, `save`, `load`, `load_one` and `metadata`.

    A step has several items: trees, a configuration in JSON and the position of a data iterator,
    which saves itself (`StatefulCheckpointable`). `load` reads all of them, `load_one` the first
    tree, and `metadata` no array. A save that is not asynchronous has no `save_background`. With
    `deletion` also `delete_one`, of the first tree, and `delete`, of the rest; in the background
    `delete_one_blocking` and `delete_blocking` are the parts before they return. All that was
    loaded is verified outside the clock, and so is what is left.
    """

    def test_fn(
        self, context: interface.TestContext[CheckpointablesOptions]
    ) -> interface.TestResult:
        """Saves all items, loads all, loads one, and asks for the metadata."""
        from orbax_bench_core.state import digest, orbax_api, tree_bytes

        metrics, options, path = Metrics(), context.options, context.path / "step"
        tree = dividing.require_dicts(context, "checkpointables")
        parts = dividing.divided(tree, options.tree_items, "checkpointables")
        first, num_bytes = digest(parts[0]), tree_bytes(tree)
        trees = {f"tree_{index}": part for index, part in enumerate(parts)}
        targets = {name: saving.load_target(part) for name, part in trees.items()}
        items = {**trees, "config": _CONFIG, "iterator": _Iterator(_POSITION)}
        orbax = orbax_api.make_context()
        orbax_api.store_as_json(orbax, "config")

        def load(operation: str, wanted: Mapping[str, Any], size: int) -> dict[str, Any]:
            found: dict[str, Any] = saving.measure_load(
                *(metrics, context, operation, path),
                lambda: orbax_api.load_items(path, wanted),
                num_bytes=size,
            )
            return found

        with orbax:
            saving.measure_save_by(
                *(metrics, context, path, items), orbax_api.save_items, orbax_api.save_items_async
            )
            delete_if_scarce(tree)
            iterator = _Iterator(0)
            loaded = load("load", {**targets, "config": None, "iterator": iterator}, num_bytes)
            context.verify(dividing.merged([loaded[name] for name in trees]))
            context.verify(
                {"config": loaded["config"], "position": iterator.position},
                {"config": _CONFIG, "position": _POSITION},
                against="saved",
            )
            delete(loaded)
            loaded = load("load_one", {"tree_0": targets["tree_0"]}, tree_bytes(parts[0]))
            context.verify(loaded["tree_0"], first, against="saved")
            context.prepare_load("metadata", path)
            with metrics.measure("metadata", options.collectors):
                described = orbax_api.describe_items(path)
            _check_items(described, items)
            if options.deletion is not None:
                _measure_deletion(metrics, context, path, "tree_0")
                _check_items(orbax_api.describe_items(path), items.keys() - {"tree_0"})
                _measure_deletion(metrics, context, path, None)
                if path.exists():
                    raise interface.VerificationError(f"{path} was deleted, and is still there")
        return interface.TestResult(metrics=metrics)


def _check_items(described: Iterable[str], expected: Iterable[str]) -> None:
    found, wanted = sorted(described), sorted(expected)
    if found != wanted:
        raise interface.VerificationError(
            f"the metadata should describe {wanted}; they describe {found}"
        )


def _measure_deletion(
    metrics: Metrics,
    context: interface.TestContext[CheckpointablesOptions],
    path: Any,
    item: str | None,
) -> None:
    """Deletes one item of a checkpoint, or with None all that is left of it."""
    from orbax_bench_core.state import orbax_api

    operation = "delete" if item is None else "delete_one"
    with metrics.measure(operation, context.options.collectors):
        if context.options.deletion == "blocking":
            orbax_api.delete(path, item)
        else:
            with metrics.measure(f"{operation}_blocking"):
                begun = orbax_api.delete_async(path, item)
            begun.result()
    await_all_hosts(f"{operation} of {path}")
