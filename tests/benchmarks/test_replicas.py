"""Replicas that hold the same, and replicas that do not."""

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.support import replicas
from orbax_bench_core.state import StateError

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


def test_a_target_of_one_replica_is_repeated_on_all(mesh, make_mesh):
    single = NamedSharding(
        jax.sharding.Mesh(mesh.devices[0].reshape(2, 2), ("x", "y")), PartitionSpec("x", "y")
    )
    target = jax.ShapeDtypeStruct(SHAPE, "float32", sharding=single)
    found = replicas.over_replicas({"w": target}, mesh)["w"].sharding
    assert found.mesh.axis_names == ("replica", "x", "y")
    assert found.mesh.devices.tolist() == mesh.devices.reshape(2, 2, 2).tolist()
    assert found.shard_shape(SHAPE) == single.shard_shape(SHAPE) == (4, 3)


def test_a_target_with_replicas_of_its_own_is_refused(mesh):
    single = NamedSharding(
        jax.sharding.Mesh(mesh.devices[0], ("replica",)), PartitionSpec("replica")
    )
    target = jax.ShapeDtypeStruct(SHAPE, "float32", sharding=single)
    with pytest.raises(StateError, match="describes one replica"):
        replicas.over_replicas({"w": target}, mesh)


def test_what_lies_over_the_first_axis_cannot_be_broadcast(mesh):
    across = NamedSharding(mesh, PartitionSpec(("replica", "model")))
    target = jax.ShapeDtypeStruct(SHAPE, "float32", sharding=across)
    with pytest.raises(UnmetNeed, match="first of which counts replicas"):
        replicas.check_broadcast({"w": target})


def test_what_each_replica_holds_can_be_broadcast(sharding):
    replicas.check_broadcast({"w": jax.ShapeDtypeStruct(SHAPE, "float32", sharding=sharding)})


def test_the_own_replica_keeps_the_axes(mesh):
    own = replicas.own_replica(mesh, 0)
    assert own.axis_names == mesh.axis_names
    assert own.devices.tolist() == mesh.devices[:1].tolist()
