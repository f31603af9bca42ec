"""Save and load of a checkpoint: with Orbax's options, and on Lustre."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.support.needs import require_tree
from orbax_bench_core.benchmarks.support.options import (
    MeasuringOptions,
    ReplicaFolderOptions,
    await_all_hosts,
    delete_if_scarce,
    gib_to_bytes,
)
from orbax_bench_core.benchmarks.support.saving import load_target, measure_load, measure_save_by
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath
    from orbax.checkpoint import v1 as ocp


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveRestoreOptions(ReplicaFolderOptions, MeasuringOptions):
    """Options of `save_restore`.

    Attributes:
        async_enabled: Save in the background, with `save_async`; otherwise all of a save blocks.
        use_ocdbt: Store arrays in OCDBT, a database of few files, rather than a folder per array.
        use_zarr3: Store arrays as Zarr v3 rather than v2.
        use_compression: Compress array data with zstd.
        use_replica_parallel: Have each replica write a part of a replicated array.
        enable_replica_parallel_separate_folder: Give each replica's part a folder of its own; needs
            use_replica_parallel and use_ocdbt.
        use_load_and_broadcast: Load on one replica and broadcast to the others.
        chunk_byte_size: Largest chunk of an array on storage, in bytes; null takes one chunk per
            shard.
        save_concurrent_gb: Most data in flight while saving, in GiB; null sets no limit.
        restore_concurrent_gb: Most data in flight while loading, in GiB; null sets no limit.
    """

    async_enabled: interface.Sweepable[bool] = True
    use_ocdbt: interface.Sweepable[bool] = True
    use_zarr3: interface.Sweepable[bool] = True
    use_compression: interface.Sweepable[bool] = True
    use_replica_parallel: interface.Sweepable[bool] = False
    enable_replica_parallel_separate_folder: interface.Sweepable[bool] = False
    use_load_and_broadcast: interface.Sweepable[bool] = False
    chunk_byte_size: interface.Sweepable[int | None] = None
    save_concurrent_gb: interface.Sweepable[float | None] = None
    restore_concurrent_gb: interface.Sweepable[float | None] = None

    def orbax_context(self, **more: Any) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax_bench_core.state import make_context

        return make_context(
            **more,
            use_ocdbt=self.use_ocdbt,
            use_zarr3=self.use_zarr3,
            use_compression=self.use_compression,
            use_replica_parallel=self.use_replica_parallel,
            enable_replica_parallel_separate_folder=self.enable_replica_parallel_separate_folder,
            chunk_byte_size=self.chunk_byte_size,
            use_load_and_broadcast=self.use_load_and_broadcast,
            write_concurrent_bytes=gib_to_bytes(self.save_concurrent_gb),
            read_concurrent_bytes=gib_to_bytes(self.restore_concurrent_gb),
        )


def measure_save(
    metrics: Metrics,
    context: interface.TestContext[SaveRestoreOptions],
    path: epath.Path,
    tree: Any,
    *,
    meanwhile: contextlib.AbstractContextManager[object] | None = None,
) -> None:
    """Saves once with Orbax, and measures it as `measure_parts` does.

    Args:
        metrics: Takes the samples.
        context: The repeat.
        path: Folder of the checkpoint.
        tree: What is saved.
        meanwhile: Context that is open during the background part, such as training.
    """
    from orbax_bench_core.state import orbax_api

    save, save_async = orbax_api.save, orbax_api.save_async
    measure_save_by(metrics, context, path, tree, save, save_async, meanwhile=meanwhile)


def measure_round_trip(
    metrics: Metrics, context: interface.TestContext[SaveRestoreOptions], tree: Any
) -> Any:
    """Saves once as `measure_save` does, measures one `load`, and returns what was loaded."""
    from orbax_bench_core.state import orbax_api, tree_bytes

    path, num_bytes, target = context.path / "ckpt", tree_bytes(tree), load_target(tree)
    measure_save(metrics, context, path, tree)
    delete_if_scarce(tree)
    load = functools.partial(orbax_api.load, path, target)
    return measure_load(metrics, context, "load", path, load, num_bytes=num_bytes)


@interface.benchmark_options(SaveRestoreOptions)
class SaveRestore(interface.BenchmarksGenerator[SaveRestoreOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `load`.

    With `durable: true` also `save_durable`, until everything is on stable storage.

    Inputs are ready before a save starts, and outputs before a load stops. What was loaded is
    verified outside the clock. A save that is not asynchronous has no `save_background`.
    """

    def test_fn(self, context: interface.TestContext[SaveRestoreOptions]) -> interface.TestResult:
        """Runs one save and one load."""
        metrics = Metrics()
        tree = require_tree(context, "save_restore")
        with context.options.orbax_context():
            restored = measure_round_trip(metrics, context, tree)
        context.verify(restored)
        return interface.TestResult(metrics=metrics)


_MOUNTS = Path("/proc/self/mountinfo")
_STRIPE_UNIT_KB = 64
_ALL_TARGETS = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class LustreOptions(SaveRestoreOptions):
    """Options of `lustre`, beside those of `save_restore`.

    Attributes:
        stripe_count: Over how many storage targets each file is spread; -1 takes all of them, null
            the file system's own choice.
        stripe_size_kb: How many KiB of a file go to one target before the next, a multiple of 64;
            null takes the file system's own choice.
    """

    stripe_count: interface.Sweepable[int | None] = None
    stripe_size_kb: interface.Sweepable[int | None] = None

    def __post_init__(self) -> None:
        count, size = self.stripe_count, self.stripe_size_kb
        if isinstance(count, int) and count < 1 and count != _ALL_TARGETS:
            raise ValueError(f"stripe_count must be 1 or more, or -1 for all targets, got {count}")
        if isinstance(size, int) and (size < 1 or size % _STRIPE_UNIT_KB):
            raise ValueError(f"stripe_size_kb must be a multiple of {_STRIPE_UNIT_KB}, got {size}")


@interface.benchmark_options(LustreOptions)
class Lustre(interface.BenchmarksGenerator[LustreOptions]):
    """Measures what `save_restore` does, in a directory of Lustre with a given striping.

    It fails where the output directory is not on Lustre. The striping that the files got is noted
    in the record.
    """

    def test_fn(self, context: interface.TestContext[LustreOptions]) -> interface.TestResult:
        """Sets the striping, then runs one save and one load."""
        import jax

        options = context.options
        lfs = _require_lustre(context.path)
        if jax.process_index() == 0:
            chosen = []
            if options.stripe_count is not None:
                chosen += ["--stripe-count", str(options.stripe_count)]
            if options.stripe_size_kb is not None:
                chosen += ["--stripe-size", f"{options.stripe_size_kb}K"]
            if chosen:
                _run([lfs, "setstripe", *chosen, str(context.path)])
        await_all_hosts("striped")
        result = SaveRestore().test_fn(context)
        found = _run([lfs, "getstripe", "--directory", str(context.path)])
        result.metrics.notes["striping"] = found.splitlines()
        return result


def file_system(path: epath.Path) -> str:
    """Returns the type of the file system that holds a directory; "" where nobody knows."""
    if "://" in str(path) or not _MOUNTS.exists():
        return ""
    directory, best, kind = Path(path).resolve(), Path(), ""
    for line in _MOUNTS.read_text().splitlines():
        mounted, _, described = line.partition(" - ")
        # The kernel writes a space in a path as \\040.
        point = Path(mounted.split()[4].encode().decode("unicode_escape"))
        if directory.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, described.split()[0]
    return kind


def _require_lustre(path: epath.Path) -> str:
    kind = file_system(path)
    if kind != "lustre":
        where = f"on {kind}" if kind else "not on a file system of this machine"
        raise interface.UnmetNeed(
            f"lustre needs an output directory on Lustre; {str(path)!r} is {where}"
        )
    lfs = shutil.which("lfs")
    if lfs is None:
        raise interface.UnmetNeed(
            "lustre needs the lfs command to set a striping; install lustre-client"
        )
    return lfs


def _run(command: list[str]) -> str:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise interface.UnmetNeed(f"{' '.join(command[:2])} failed: {process.stderr.strip()}")
    return process.stdout
