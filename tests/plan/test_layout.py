"""Layout of a save by arithmetic, held against JAX's own shards and Orbax's own chunk shapes."""

import itertools
import math
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.errors import UserError
from orbax_bench_core.plan import StorageOptions, plan_checkpoint
from orbax_bench_core.plan.layout import chunk_shape

BARE = StorageOptions(use_compression=False)
ALONE = StorageOptions(use_compression=False, use_replica_parallel=False)


def array(shape, *sharding, dtype="float32"):
    return {"shape": list(shape), "dtype": dtype, "sharding": list(sharding) or None}


@pytest.mark.parametrize("spec", [(), ("x",), (None, "y"), (("x", "y"),), (("y", "x"), None)])
def test_shards_and_writers_are_those_of_jax(spec):
    devices = np.array(jax.devices()).reshape(2, 4)
    sharding = NamedSharding(Mesh(devices, ("x", "y")), PartitionSpec(*spec))
    plan = plan_checkpoint(
        {"w": array((16, 8), *spec)}, mesh={"x": 2, "y": 4}, devices_per_host=2, options=ALONE
    )
    (layout,) = plan.layout.arrays
    assert layout.shard_shape == sharding.shard_shape((16, 8))
    value = jax.device_put(np.ones((16, 8), "float32"), sharding)
    shards = {shard.device: shard for shard in value.addressable_shards}
    writers = [
        sum(shards[device].replica_id == 0 for device in host)
        for host in devices.reshape(4, 2).tolist()
    ]
    assert (plan.layout.host_bytes / layout.write_bytes).tolist() == writers
    assert plan.layout.host_bytes.sum() == 16 * 8 * 4
    assert plan.device_bytes == layout.shard_bytes


def test_chunks_are_those_of_orbax():
    from orbax.checkpoint._src.arrays.subchunking import choose_chunk_shape

    shapes = [((512, 96), (64, 96)), ((7, 13), (7, 13)), ((4000, 30, 6), (2000, 30, 3)), ((), ())]
    for (whole, part), limit in itertools.product(shapes, (4, 60, 1000, 65536, 10**7)):
        options = StorageOptions(chunk_byte_size=limit)
        expected = choose_chunk_shape(whole, part, np.dtype("float32"), limit)
        assert chunk_shape(whole, part, 4, options) == expected, (whole, part, limit)


def test_a_chunk_is_no_larger_than_a_data_file():
    limited = StorageOptions(target_file_size=1024)
    assert math.prod(chunk_shape((64, 64), (64, 64), 4, limited)) == 256
    assert chunk_shape((64, 64), (64, 64), 4, StorageOptions(use_ocdbt=False)) == (64, 64)
    assert chunk_shape((64, 64), (64, 64), 4, StorageOptions(target_file_size=0)) == (64, 64)


def test_replicas_share_the_first_dimension_that_divides():
    parallel = StorageOptions(use_compression=False, use_replica_parallel=True)
    tree = {"w": array((6, 16), None, "y"), "odd": array((7, 13))}
    plan = plan_checkpoint(tree, mesh={"x": 2, "y": 4}, devices_per_host=4, options=parallel)
    odd, shared = plan.layout.arrays
    assert (shared.write_shape, shared.parallel) == ((3, 4), True)
    assert (odd.write_shape, odd.parallel) == ((7, 13), False)
    assert plan.layout.host_bytes.tolist() == [6 * 16 * 2 + 7 * 13 * 4, 6 * 16 * 2]


def test_the_first_line_is_that_of_the_save_count_for_any_tree():
    plan = plan_checkpoint({"kernel": array((3, 5)), "bias": array((5,))}, mesh={"x": 2})
    assert (plan.elements, plan.even_share, plan.largest_share) == (20, 10.0, 20)
    cut = plan_checkpoint({"kernel": array((8, 16), "x"), "bias": array((16,), "x")}, mesh="x=4")
    assert (cut.elements, cut.even_share, cut.largest_share) == (144, 36.0, 36)


def test_compression_leaves_bytes_open_unless_a_ratio_was_measured():
    tree = {"a": array((1024, 1024))}
    assert plan_checkpoint(tree).stored_bytes is None
    measured = plan_checkpoint(tree, options=StorageOptions(compression_ratio=0.5))
    assert measured.stored_bytes == 2 * 2**20
    assert plan_checkpoint(tree, options=BARE).stored_bytes == 4 * 2**20


def test_presets_and_partitions_of_many_devices_need_no_device():
    plan = plan_checkpoint("llama-8b+adamw", mesh="data=16,fsdp=16", devices_per_host=4)
    assert plan.tree.elements == 3 * 8_030_261_248 + 3
    assert plan.mesh.num_hosts == 64
    assert plan.layout.host_bytes.sum() == plan.tree.num_bytes
    assert plan.replicated_share == pytest.approx(15 / 16, abs=0.001)


def test_limits_below_one_shard_are_foretold():
    options = StorageOptions(save_concurrent_gb=1e-4, restore_concurrent_gb=1e-4)
    plan = plan_checkpoint({"w": array((1024, 1024), "x")}, mesh="x=4", options=options)
    save, load = plan.failures
    assert save.startswith("the save will fail: w is written in parts of 1 MiB")
    assert load.startswith("the load will fail: one shard of w reads 1 MiB")
    assert not plan_checkpoint({"w": array((1024, 1024), "x")}, mesh="x=4").failures


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mesh": "x=3"}, "dimension 0 has 16 elements, which x=3 cannot split into 3 equal parts"),
        ({"mesh": "x"}, "--mesh: expected a mesh such as data=16,fsdp=16, each axis once, got 'x'"),
        ({"mesh": "x=2,x=2"}, "each axis once, got 'x=2,x=2'"),
        ({"mesh": "x=16"}, "--mesh: 16 devices do not say how many hosts there are"),
        ({"mesh": "x=16", "devices_per_host": 3}, "16 devices do not make whole hosts of 3"),
        ({"mesh": "x=100001"}, "100001 devices are more than the 100000"),
        ({"restore_mesh": "x=5"}, "which x=5 cannot split into 5 equal parts"),
    ],
)
def test_a_mesh_that_does_not_fit_is_explained(given, message):
    with pytest.raises(UserError) as error:
        plan_checkpoint({"w": array((16, 8), "x")}, **given)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk_byte_size": 0}, "chunk_byte_size must be 1 or more bytes, got 0"),
        ({"compression_ratio": -1.0}, "compression_ratio must be a positive number, got -1.0"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        StorageOptions(**options)


@pytest.mark.slow
def test_a_plan_needs_no_jax():
    program = (
        "import sys; from orbax_bench_core.plan import plan_source, plans_document, read_source;"
        "found = read_source('llama-8b');"
        "plans = plan_source(found, mesh='fsdp=256', devices_per_host=4);"
        "plans_document(plans, found, 'llama-8b');"
        "assert not {'jax', 'orbax', 'flax', 'pandas'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
