"""Loads onto other layouts and onto replicas, which hold the same or are found."""

import jax
import numpy as np
import pytest
from etils import epath
from jax.sharding import NamedSharding, PartitionSpec

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.loads import OrbaxLoad
from orbax_bench_core.benchmarks.resharding import (
    ReplicaParallelMultislice,
    Resharding,
    RestoreAndBroadcast,
)
from orbax_bench_core.benchmarks.support import existing, replicas
from orbax_bench_core.state import StateError, orbax_api

from .conftest import ARRAYS


@pytest.fixture
def loaded(monkeypatch):
    """What was loaded, before it is verified."""
    trees = []
    load = existing.Reference.load

    def noted(self, target):
        tree = load(self, target)
        trees.append(jax.tree.map(lambda leaf: leaf.sharding, tree))
        return tree

    monkeypatch.setattr(existing.Reference, "load", noted)
    return trees


@pytest.mark.slow
def test_measures_one_load_of_all_bytes(run):
    outcome = run(Resharding)
    assert outcome.blocks == ["load"]
    assert outcome.value("load", "5_inventory/operation_bytes") == 512 * 256 * 2 + 64 * 64 * 4
    assert outcome.prepared == ["load"]
    assert outcome.verified


@pytest.mark.slow
def test_reference_sharding_path(run, sharding_file, loaded):
    file = sharding_file({"x": 2, "y": 4}, [None, ["x", "y"]], ["y", None])
    run(Resharding, reference_sharding_path=file, spec=ARRAYS)
    (tree,) = loaded
    assert tree["array"].spec == PartitionSpec(None, ("x", "y"))
    assert tree["nested"]["replicated"].spec == PartitionSpec("y", None)


def test_the_default_layout_is_another_than_the_saved(run, loaded):
    run(Resharding, spec=ARRAYS)
    (tree,) = loaded
    assert tree["array"].shard_shape((512, 256)) == (128, 128)  # saved were parts of 128 x 256


@pytest.mark.usefixtures("loaded")
def test_without_data_a_wrong_load_is_found(run, checkpoint, monkeypatch):
    load, calls = existing.Reference.load, []

    def wrong(self, target):
        tree = load(self, target)
        calls.append(1)
        return tree if len(calls) > 1 else {**tree, "array": tree["array"] + 1}

    monkeypatch.setattr(existing.Reference, "load", wrong)
    with pytest.raises(VerificationError, match="array: different"):
        run(Resharding, reference_checkpoint_path=str(checkpoint), spec=None)


@pytest.mark.slow
def test_another_checkpoint_than_the_data_is_found(run, tmp_path, make_tree):
    other = jax.tree.map(np.zeros_like, make_tree(ARRAYS))
    orbax_api.save(epath.Path(tmp_path) / "other", jax.tree.map(jax.numpy.asarray, other))
    with pytest.raises(VerificationError, match="array: different"):
        run(Resharding, reference_checkpoint_path=str(tmp_path / "other"), spec=ARRAYS)


@pytest.mark.slow
def test_every_replica_is_loaded_as_the_sharding_file_says(run, sharding_file, monkeypatch):
    file = sharding_file({"x": 2, "y": 2}, ["y", "x"])
    seen = []
    check = replicas.check_replicas
    monkeypatch.setattr(replicas, "check_replicas", lambda tree: (seen.append(tree), check(tree)))
    run(RestoreAndBroadcast, spec=ARRAYS, reference_sharding_path=file)
    array = seen[0]["array"]
    assert array.sharding.mesh.shape == {"replica": 2, "x": 2, "y": 2}
    assert {shard.data.shape for shard in array.addressable_shards} == {(256, 128)}


@pytest.mark.slow
def test_reference_checkpoint_path_is_what_is_loaded(run, checkpoint):
    outcome = run(RestoreAndBroadcast, spec=ARRAYS, reference_checkpoint_path=str(checkpoint))
    assert outcome.verified
    assert outcome.files("*") == []
    assert str(outcome.inventory_path) == str(checkpoint / "state")


@pytest.mark.slow
def test_a_replica_that_got_nothing_is_found(run, monkeypatch):
    load = existing.Reference.load

    def half(self, target):
        tree = load(self, target)
        array = tree["array"]
        parts = [
            shard.data if shard.replica_id == 0 else shard.data * 0
            for shard in array.addressable_shards
        ]
        broken = jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)
        return {**tree, "array": broken}

    monkeypatch.setattr(existing.Reference, "load", half)
    with pytest.raises(VerificationError, match="array: two replicas"):
        run(RestoreAndBroadcast)


CHUNKS = "array/c/*/*"


@pytest.mark.slow
def test_defect_11_every_saving_is_kept(run):
    outcome = run(ReplicaParallelMultislice, num_savings=3)
    assert outcome.blocks == ["save_blocking", "save_background", "save"] * 3
    assert sorted(path.name for path in (outcome.folder / "ckpt").iterdir()) == ["0", "1", "2"]


@pytest.mark.slow
def test_reference_sharding_path_describes_one_replica(run, sharding_file):
    outcome = run(
        ReplicaParallelMultislice,
        spec=ARRAYS,
        use_ocdbt=False,
        reference_sharding_path=sharding_file({"x": 2, "y": 2}, [None, "y"]),
    )
    files = outcome.files(CHUNKS, "ckpt/0/state")
    assert sorted(str(file)[-3:] for file in files) == ["0/0", "0/1"]
    assert outcome.verified


@pytest.mark.slow
def test_reference_checkpoint_path_is_left_alone(run, checkpoint):
    run(ReplicaParallelMultislice, spec=ARRAYS, reference_checkpoint_path=str(checkpoint))
    assert checkpoint.exists()


@pytest.mark.parametrize("benchmark", [ReplicaParallelMultislice, RestoreAndBroadcast, OrbaxLoad])
def test_a_broadcast_is_compared_with_a_load_without_one(run, checkpoint, benchmark):
    name = "checkpoint_path" if benchmark is OrbaxLoad else "reference_checkpoint_path"
    outcome = run(benchmark, spec=None, use_load_and_broadcast=True, **{name: str(checkpoint)})
    assert outcome.verified


@pytest.mark.slow
def test_the_first_axis_must_count_replicas(run, make_mesh):
    with pytest.raises(UnmetNeed, match="first axis is 'replica'"):
        run(ReplicaParallelMultislice, mesh=make_mesh(data=2, model=4))


SHAPE = (8, 6)


@pytest.fixture
def mesh(make_mesh):
    return make_mesh(replica=2, model=4)


@pytest.fixture
def sharding(mesh):
    return NamedSharding(mesh, PartitionSpec("model"))


@pytest.mark.parametrize("broken", range(8))
def test_a_device_with_other_values_is_found(sharding, broken):
    def part(index, device):
        values = np.arange(48.0).reshape(SHAPE)[index]
        return values + (device.id == broken)

    shards = [
        jax.device_put(part(index, device), device)
        for device, index in sharding.devices_indices_map(SHAPE).items()
    ]
    array = jax.make_array_from_single_device_arrays(SHAPE, sharding, shards)
    with pytest.raises(VerificationError, match="w: two replicas hold different values"):
        replicas.check_replicas({"w": array})


@pytest.mark.slow
def test_a_target_with_replicas_of_its_own_is_refused(run, sharding_file):
    file = sharding_file({"replica": 4}, ["replica"])
    with pytest.raises(StateError, match="describes one replica"):
        run(RestoreAndBroadcast, spec=ARRAYS, reference_sharding_path=file)


def test_what_lies_over_the_first_axis_cannot_be_broadcast(mesh):
    across = NamedSharding(mesh, PartitionSpec(("replica", "model")))
    target = jax.ShapeDtypeStruct(SHAPE, "float32", sharding=across)
    with pytest.raises(UnmetNeed, match="first of which counts replicas"):
        replicas.check_broadcast({"w": target})


def test_what_each_replica_holds_can_be_broadcast(sharding):
    replicas.check_broadcast({"w": jax.ShapeDtypeStruct(SHAPE, "float32", sharding=sharding)})
