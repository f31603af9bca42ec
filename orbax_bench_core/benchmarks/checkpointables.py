"""Several items in one checkpoint: trees, JSON and an object that saves itself, as trainers do."""

import dataclasses
import json
from collections.abc import Awaitable
from typing import Any

from orbax_bench_core import authoring
from orbax_bench_core.benchmarks.support import dividing, saving
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import (
    BoundedOptions,
    MeasuringOptions,
    delete,
    delete_if_scarce,
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
        """Returns what reads the position in the background."""

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
    """

    async_enabled: authoring.Sweepable[bool] = True
    tree_items: authoring.Sweepable[int] = 2

    least = {"tree_items": 1}


@authoring.benchmark_options(CheckpointablesOptions)
class Checkpointables(authoring.BenchmarksGenerator[CheckpointablesOptions]):
    """Measures `save_blocking`, `save_background`, `save`, `load`, `load_one` and `metadata`.

    A step has several items: trees, a configuration in JSON and the position of a data iterator,
    which saves itself (`StatefulCheckpointable`). `load` reads all of them, `load_one` the first
    tree, and `metadata` no array. A save that is not asynchronous has no `save_background`. All
    that was loaded is verified outside the clock.
    """

    def test_fn(
        self, context: authoring.TestContext[CheckpointablesOptions]
    ) -> authoring.TestResult:
        """Saves all items, loads all, loads one, and asks for the metadata."""
        import jax

        from orbax_bench_core.state import digest, orbax_api, tree_bytes

        metrics, options = Metrics(), context.options
        tree, path = require_tree(context, "checkpointables"), context.path / "step"
        dividing.require_dicts(tree, "checkpointables")
        parts = dividing.divided(tree, options.tree_items, "checkpointables")
        first, num_bytes = digest(parts[0]), tree_bytes(tree)
        trees = {f"tree_{index}": part for index, part in enumerate(parts)}
        targets = {name: saving.load_target(part) for name, part in trees.items()}
        items = {**trees, "config": _CONFIG, "iterator": _Iterator(_POSITION)}
        jax.block_until_ready(tree)
        save = orbax_api.save_items_async if options.async_enabled else orbax_api.save_items
        orbax = orbax_api.make_context()
        orbax_api.store_as_json(orbax, "config")
        with orbax:
            saving.measure_parts(
                metrics,
                context,
                path,
                lambda: save(path, items),
                saving.await_result if options.async_enabled else None,
                num_bytes=num_bytes,
                collectors=options.collectors,
            )
            delete_if_scarce(tree)
            iterator = _Iterator(0)
            context.prepare_load("load", path)
            with metrics.measure("load", options.collectors, num_bytes=num_bytes):
                wanted = {**targets, "config": None, "iterator": iterator}
                loaded = orbax_api.load_items(path, wanted)
                jax.block_until_ready([loaded[name] for name in trees])
            context.verify(dividing.merged([loaded[name] for name in trees]))
            context.verify(
                {"config": loaded["config"], "position": iterator.position},
                {"config": _CONFIG, "position": _POSITION},
                against="saved",
            )
            delete(loaded)
            context.prepare_load("load_one", path)
            wanted = {"tree_0": targets["tree_0"]}
            size = tree_bytes(parts[0])
            with metrics.measure("load_one", options.collectors, num_bytes=size):
                loaded = jax.block_until_ready(orbax_api.load_items(path, wanted))
            context.verify(loaded["tree_0"], first, against="saved")
            context.prepare_load("metadata", path)
            with metrics.measure("metadata", options.collectors):
                described = orbax_api.describe_items(path)
        if described.keys() != items.keys():
            raise authoring.VerificationError(
                f"the metadata should describe {sorted(items)}; they describe {sorted(described)}"
            )
        return authoring.TestResult(metrics=metrics)
