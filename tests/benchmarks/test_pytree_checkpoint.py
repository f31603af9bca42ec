"""`pytree_checkpoint` and `single_replica`: options change what Orbax does, for one repeat."""

import jax
import orbax.checkpoint as ocp
import pytest
from orbax.checkpoint._src.multihost import multislice

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.pytree_checkpoint import (
    PyTreeCheckpoint,
    PyTreeCheckpointOptions,
    SingleReplica,
    SingleReplicaOptions,
)
from orbax_bench_core.benchmarks.support import replicas

from .conftest import ARRAYS, SPEC

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


LOCAL = {"spec": ARRAYS, "use_distributed_process_id": False}


@pytest.fixture
def broadcasts(monkeypatch):
    """The arguments of every broadcast."""
    seen = []
    broadcast = multislice.broadcast_one_replica_to_all

    def noted(*arguments, **named):
        result = broadcast(*arguments, **named)
        seen.append({**named, "axis": arguments[2], "chunks": result[1]})
        return result

    monkeypatch.setattr(multislice, "broadcast_one_replica_to_all", noted)
    return seen


@pytest.mark.slow
def test_single_replica_measures_save_and_restore(run):
    outcome = run(SingleReplica, **LOCAL)
    assert outcome.blocks == ["save_blocking", "save_background", "save", "restore"]
    assert outcome.prepared == ["restore"]
    assert "restore_3_load_breakdown/broadcast_s" in outcome.metrics.results
    assert outcome.verified


@pytest.mark.slow
@pytest.mark.parametrize(("axis", "sizes"), [(0, (2, 4)), (1, (4, 2))])
def test_replica_axis_index(run, broadcasts, make_mesh, axis, sizes):
    names = ("replica", "model") if axis == 0 else ("model", "replica")
    mesh = make_mesh(**dict(zip(names, sizes, strict=True)))
    assert run(SingleReplica, **LOCAL, mesh=mesh, replica_axis_index=axis).verified
    assert broadcasts[0]["axis"] == axis


@pytest.mark.slow
def test_broadcast_memory_scaling_factor(run, broadcasts):
    run(SingleReplica, **LOCAL, broadcast_memory_scaling_factor=0.5)
    assert broadcasts[0]["memory_scaling_factor"] == 0.5


@pytest.mark.slow
def test_primary_replica_id(run):
    handler = SingleReplicaOptions(primary_replica_id=1).handler()
    assert handler._type_handler_registry.get(jax.Array).primary_replica_id == 1
    assert run(SingleReplica, **LOCAL, primary_replica_id=1).verified


@pytest.mark.parametrize("replica", [-1, 2])
def test_a_replica_that_is_not_there_is_said(run, replica):
    with pytest.raises(UnmetNeed, match="the mesh has 2"):
        run(SingleReplica, **LOCAL, primary_replica_id=replica)


def test_use_distributed_process_id_needs_several_processes(run):
    with pytest.raises(UnmetNeed, match="set processes: 2"):
        run(SingleReplica, spec=ARRAYS)


def test_scalars_cannot_be_broadcast(run):
    with pytest.raises(UnmetNeed, match="leave out 'step'"):
        run(SingleReplica, spec=SPEC, use_distributed_process_id=False)


@pytest.mark.parametrize("factor", [0, 1.5])
def test_a_factor_beyond_the_memory_is_refused(factor):
    with pytest.raises(ValueError, match="above 0 and up to 1"):
        SingleReplicaOptions(broadcast_memory_scaling_factor=factor)


def test_flags_are_set_for_the_benchmark_only():
    flag = replicas.PROCESS_ID_FLAG
    from absl import flags

    parsed = flags.FLAGS.is_parsed()
    with replicas.orbax_flags(**{flag: True}):
        assert flags.FLAGS[flag].value is True
        assert ocp.multihost.process_index() == 0
    assert flags.FLAGS[flag].value is False
    assert flags.FLAGS.is_parsed() is parsed
