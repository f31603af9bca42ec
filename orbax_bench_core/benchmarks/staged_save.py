"""Save with options of its stages: copies off the devices, files, and the commit."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions, measure_save
from orbax_bench_core.benchmarks.support.needs import require_one_process, require_tree
from orbax_bench_core.benchmarks.support.options import delete_if_scarce, gib_to_bytes, later
from orbax_bench_core.benchmarks.support.saving import load_target, measure_load
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from orbax.checkpoint import v1 as ocp

_STORED: Final = ("bfloat16", "float16", "float32", "float64")
_OF_ORBAX: Final = (
    "deepcopy_host_arrays",
    "create_directories_asynchronously",
    "enable_pinned_host_transfer",
    "ocdbt_target_data_file_size",
    "min_slice_bytes_for_replica_parallel",
    "max_replicas_for_replica_parallel",
    "enable_write_sharding_file",
    "enable_post_merge_validation",
    "skip_sync_file_validations",
    "atomicity",
    "timeout_secs",
)
"""Options that Orbax's context has with the same values."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StagedSaveOptions(SaveRestoreOptions):
    """Options of `staged_save`, in addition to those of `save_restore`.

    Attributes:
        device_host_concurrent_gb: Most data on its way from device to storage at a time, in GiB on
            each host, of the arrays that background_keys names, which it needs; null sets no limit.
            Arrays that do not fit are copied off their devices as others have been written.
        save_dtype: Dtype of floating-point arrays on storage, such as bfloat16 for a training in
            float32; null stores them as they are. A load gives them their own dtype back, with the
            precision that storage has left.
        background_keys: Regular expression that is searched in the path of each array, such as
            `opt_state`: those that match are copied off their devices in the background, within
            device_host_concurrent_gb, and a training must not change them before; null copies all
            arrays before a save goes on. It is what is_prioritized_key_fn was for, which Orbax
            0.12 does not read.
        regulator_max_gb: Have Orbax change the limit from save to save by the memory that the
            process took: from device_host_concurrent_gb, with which it begins, up to this, in GiB;
            null leaves the limit as it is.
        expected_surge_gb: Memory that something else is about to take, in GiB, by which the
            regulator lowers the limit of each save; needs regulator_max_gb.
        num_savings: How many checkpoints to save, one after the other; the last is loaded.
        host_arrays: Save NumPy arrays, as of a state that lies in the memory of the host; needs one
            process.
        deepcopy_host_arrays: Copy NumPy arrays before a save goes on, so that a training may change
            them; false saves that memory. It needs host_arrays.
        create_directories_asynchronously: Make the folders of a checkpoint in the background.
        enable_pinned_host_transfer: Copy off the devices into pinned memory; null leaves it to
            Orbax, whose v1 interface then does not (0.12.8), on GPUs neither.
        ocdbt_target_data_file_size: Size in bytes at which a new data file is begun; 0 sets no
            limit, null takes Orbax's own (2 GB). Needs use_ocdbt and use_zarr3.
        min_slice_bytes_for_replica_parallel: Least bytes of an array that a replica writes; of
            smaller arrays one replica writes all. Needs use_replica_parallel.
        max_replicas_for_replica_parallel: Most replicas that write parts of an array; needs
            use_replica_parallel.
        enable_write_sharding_file: Store how arrays were sharded, for loads that do not say it.
        enable_post_merge_validation: Check the arrays once the files of all processes are merged.
        skip_sync_file_validations: Do not look whether the path exists before a save begins.
        path_permission_mode: Mode of the checkpoint's folder as octal digits, such as "750"; null
            leaves it to the umask.
        atomicity: How a save is committed: `atomic_rename` renames a temporary folder,
            `commit_file` writes commit_success.txt last, `auto` takes what fits the storage. Orbax
            has no mode without a commit.
        timeout_secs: After how many seconds a save in the background fails.
    """

    device_host_concurrent_gb: interface.Sweepable[float | None] = None
    save_dtype: interface.Sweepable[str | None] = None
    background_keys: interface.Sweepable[str | None] = later(None)
    regulator_max_gb: interface.Sweepable[float | None] = later(None)
    expected_surge_gb: interface.Sweepable[float | None] = later(None)
    num_savings: interface.Sweepable[int] = later(1)
    host_arrays: interface.Sweepable[bool] = later(False)
    deepcopy_host_arrays: interface.Sweepable[bool] = later(True)
    create_directories_asynchronously: interface.Sweepable[bool] = later(True)
    enable_pinned_host_transfer: interface.Sweepable[bool | None] = later(None)
    ocdbt_target_data_file_size: interface.Sweepable[int | None] = later(None)
    min_slice_bytes_for_replica_parallel: interface.Sweepable[int | None] = later(None)
    max_replicas_for_replica_parallel: interface.Sweepable[int | None] = later(None)
    enable_write_sharding_file: interface.Sweepable[bool] = later(True)
    enable_post_merge_validation: interface.Sweepable[bool] = later(True)
    skip_sync_file_validations: interface.Sweepable[bool] = later(False)
    path_permission_mode: interface.Sweepable[str | None] = later(None)
    atomicity: interface.Sweepable[Literal["auto", "atomic_rename", "commit_file"]] = later("auto")
    timeout_secs: interface.Sweepable[int] = later(1200)

    def __post_init__(self) -> None:
        dtype, mode, keys = self.save_dtype, self.path_permission_mode, self.background_keys
        known = dtype is None or dtype in _STORED
        if not known and not isinstance(self.save_dtype, list):
            raise ValueError(
                f"save_dtype must be one of {', '.join(_STORED)}, or null; got {dtype!r}"
            )
        if isinstance(mode, str) and not re.fullmatch("0?7[0-7]{2}", mode):
            raise ValueError(
                'path_permission_mode must be octal digits that let the owner in, such as "750", '
                f"or null; got {mode!r}"
            )
        try:
            re.compile(keys if isinstance(keys, str) else "")
        except re.error as error:
            said = f"background_keys {keys!r} is not a regular expression: {error}"
            raise ValueError(said) from None
        for name in ("num_savings", "timeout_secs"):
            value = getattr(self, name)
            if not isinstance(value, list) and value < 1:
                raise ValueError(f"{name} must be 1 or more, got {value!r}")

    def is_valid(self) -> bool:
        """Leaves out combinations of which Orbax ignores an option."""
        parallel = (
            self.min_slice_bytes_for_replica_parallel,
            self.max_replicas_for_replica_parallel,
        )
        return (
            super().is_valid()
            and (self.regulator_max_gb is None or self.device_host_concurrent_gb is not None)
            and (self.expected_surge_gb is None or self.regulator_max_gb is not None)
            and (self.deepcopy_host_arrays or self.host_arrays)
            and (self.use_replica_parallel or parallel == (None, None))
            and (self.ocdbt_target_data_file_size is None or (self.use_ocdbt and self.use_zarr3))
        )

    def orbax_context(self, **more: Any) -> ocp.Context:
        """Returns these options as Orbax takes them."""
        from orbax_bench_core.state import orbax_api

        mode = self.path_permission_mode
        context = super().orbax_context(
            **{name: getattr(self, name) for name in _OF_ORBAX},
            transfer_concurrent_bytes=gib_to_bytes(self.device_host_concurrent_gb),
            path_permission_mode=None if mode is None else int(mode, 8),
            **more,
        )
        if self.save_dtype is not None:
            orbax_api.store_floating_as(context, str(self.save_dtype))
        if self.background_keys is not None:
            orbax_api.copy_in_background(context, self.background_keys)
        if self.regulator_max_gb is not None:
            orbax_api.regulate_transfers(
                context,
                least_gib=self.device_host_concurrent_gb or 0.0,
                most_gib=self.regulator_max_gb,
                surge_bytes=gib_to_bytes(self.expected_surge_gb),
            )
        return context


@interface.benchmark_options(StagedSaveOptions)
class StagedSave(interface.BenchmarksGenerator[StagedSaveOptions]):
    """Measures `save_blocking`, `save_background`, `save` (their whole) and `load`.

    As `save_restore`, whose options it has too. What was loaded is compared, outside the clock,
    with the arrays as storage can hold them: cast to `save_dtype` and back. The record's inventory
    has the files and bytes of all checkpoints that were saved.
    """

    def test_fn(self, context: interface.TestContext[StagedSaveOptions]) -> interface.TestResult:
        """Runs one save, or several, and one load."""
        from orbax_bench_core.state import orbax_api, tree_bytes

        metrics, options = Metrics(), context.options
        tree = require_tree(context, "staged_save")
        expected = None
        if options.save_dtype is not None and context.verifier is not None:
            expected = _as_stored(tree, str(options.save_dtype))
        saved, num_bytes, target = tree, tree_bytes(tree), load_target(tree)
        if options.host_arrays:
            saved = _on_host(tree)
        several = options.num_savings > 1
        paths = [
            context.path / "ckpt" / str(index) if several else context.path / "ckpt"
            for index in range(options.num_savings)
        ]
        with options.orbax_context():
            for path in paths:
                measure_save(metrics, context, path, saved)
            del saved
            delete_if_scarce(tree)
            load = functools.partial(orbax_api.load, paths[-1], target)
            restored = measure_load(metrics, context, "load", paths[-1], load, num_bytes=num_bytes)
        context.verify(restored, expected, against="saved")
        return interface.TestResult(metrics=metrics)


def _on_host(tree: Any) -> Any:
    """Returns a tree whose arrays are copied to NumPy's."""
    import jax
    import numpy as np

    require_one_process("staged_save with host_arrays: true")
    # A view of a device's buffer is no memory of its own, and may not be written to.
    return jax.tree.map(lambda leaf: np.array(leaf) if isinstance(leaf, jax.Array) else leaf, tree)


def _as_stored(tree: Any, dtype: str) -> Any:
    """Returns the digest of a tree whose floating-point arrays were cast to a dtype and back."""
    import jax
    import jax.numpy as jnp

    from orbax_bench_core.state import digest

    def of(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        return leaf.astype(jnp.dtype(dtype)).astype(leaf.dtype)

    return digest(jax.tree.map(of, tree))
