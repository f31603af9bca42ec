"""Each option of `pytree_checkpoint` changes what Orbax does, and nothing beyond its own repeat."""

import jax
import orbax.checkpoint as ocp

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


def test_save_device_host_concurrent_gb(run):
    handler = PyTreeCheckpointOptions(save_device_host_concurrent_gb=3).handler()
    assert handler._save_device_host_concurrent_bytes == 3 * 10**9
    assert run(PyTreeCheckpoint, save_device_host_concurrent_gb=LARGEST_SHARD_GIB / 8).verified


def test_the_handlers_of_the_process_stay(run):
    before = ocp.type_handlers.get_type_handler(jax.Array)
    run(PyTreeCheckpoint, use_replica_parallel=True)
    assert ocp.type_handlers.get_type_handler(jax.Array) is before
