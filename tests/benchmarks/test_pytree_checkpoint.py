"""Each option of `pytree_checkpoint` changes what Orbax does, and nothing beyond its own repeat."""

import gc

import jax
import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.pytree_checkpoint import (
    PyTreeCheckpoint,
    PyTreeCheckpointOptions,
)

LARGEST_SHARD_GIB = 128 * 256 * 2 / 2**30


def test_measures_save_and_restore(run):
    outcome = run(PyTreeCheckpoint)
    assert outcome.blocks == ["save_blocking", "save_background", "save", "restore"]
    assert outcome.prepared == ["restore"]
    assert outcome.verified
    for operation in ("save", "restore"):
        expected = 512 * 256 * 2 + 64 * 64 * 4
        assert outcome.value(operation, "5_inventory/operation_bytes") == expected


def test_async_enabled(run):
    assert run(PyTreeCheckpoint, async_enabled=False).operations == {
        "save",
        "save_blocking",
        "restore",
    }


@pytest.mark.parametrize("ocdbt", [True, False])
def test_use_ocdbt(run, ocdbt):
    assert bool(run(PyTreeCheckpoint, use_ocdbt=ocdbt).files("manifest.ocdbt")) is ocdbt


@pytest.mark.parametrize(("zarr3", "name"), [(True, "zarr.json"), (False, ".zarray")])
def test_use_zarr3(run, zarr3, name):
    outcome = run(PyTreeCheckpoint, use_ocdbt=False, use_zarr3=zarr3)
    assert {path.name for path in outcome.files("*z*arr*")} == {name}


@pytest.mark.slow
def test_use_compression(run):
    plain = run(PyTreeCheckpoint, use_compression=False).num_bytes()
    assert run(PyTreeCheckpoint, use_compression=True).num_bytes() < 0.85 * plain


@pytest.mark.parametrize(("parallel", "chunks"), [(False, 4), (True, 8)])
def test_use_replica_parallel(run, parallel, chunks):
    outcome = run(PyTreeCheckpoint, use_ocdbt=False, use_replica_parallel=parallel)
    assert len(outcome.files("?.0", "pytree/array")) == chunks


@pytest.mark.slow
def test_enable_replica_parallel_separate_folder(run):
    folders = "ocdbt.process_replica_*/manifest.ocdbt"
    separate = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    assert run(PyTreeCheckpoint, **separate).files(folders)
    assert not run(PyTreeCheckpoint, use_replica_parallel=True).files(folders)


@pytest.mark.parametrize("option", [{"use_ocdbt": False}, {"use_replica_parallel": False}])
def test_separate_folders_need_ocdbt_and_parallel_replicas(option):
    given = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    assert PyTreeCheckpointOptions(**given).is_valid()
    assert not PyTreeCheckpointOptions(**{**given, **option}).is_valid()


# Orbax abandons its coroutines when it refuses a chunk, and TensorStore, done with another
# chunk, finds the event loop closed.
@pytest.mark.slow
@pytest.mark.usefixtures("abandoned_reads")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("option", ["save_concurrent_gb", "restore_concurrent_gb"])
def test_concurrency_limits_reach_orbax(run, option):
    run(PyTreeCheckpoint, **{option: 2 * LARGEST_SHARD_GIB})
    with pytest.raises(ValueError, match="Requested more bytes than we reserved"):
        run(PyTreeCheckpoint, **{option: LARGEST_SHARD_GIB / 8})
    gc.collect()


def test_save_device_host_concurrent_gb(run):
    handler = PyTreeCheckpointOptions(save_device_host_concurrent_gb=3).handler()
    assert handler._save_device_host_concurrent_bytes == 3 * 10**9
    assert run(PyTreeCheckpoint, save_device_host_concurrent_gb=LARGEST_SHARD_GIB / 8).verified


@pytest.mark.slow
@pytest.mark.usefixtures("traced_to_the_end")
def test_metric_tracemalloc_enabled(run):
    metric = "save_7_memory/tracemalloc_peak_diff_mb"
    assert metric in run(PyTreeCheckpoint, metric_tracemalloc_enabled=True).metrics.results
    assert metric not in run(PyTreeCheckpoint).metrics.results


def test_use_colocated_python_needs_pathways(run):
    with pytest.raises(UnmetNeed, match="JAX runs on cpu here"):
        run(PyTreeCheckpoint, use_colocated_python=True)


def test_the_handlers_of_the_process_stay(run):
    before = ocp.type_handlers.get_type_handler(jax.Array)
    run(PyTreeCheckpoint, use_replica_parallel=True)
    assert ocp.type_handlers.get_type_handler(jax.Array) is before
