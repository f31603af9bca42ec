"""The probes of raw TensorStore: tensorstore_write and tensorstore_read."""

import json

import jax
import numpy as np
import pytest

from orbax_bench_core.limits import probes, scratch
from orbax_bench_core.limits.probes import tensorstore_read, tensorstore_write

COMPRESSED = pytest.mark.parametrize("compressed", [True, False])


def metadata(workload, compressed):
    folder = probes.array_folder(workload, compressed=compressed)
    return json.loads((folder / "zarr.json").read_text())


@COMPRESSED
def test_what_is_written_is_read(workload, compressed):
    tensorstore_write(workload, compressed=compressed)
    found = probes.read_array(workload, compressed=compressed)
    np.testing.assert_array_equal(found, workload.pieces)


@COMPRESSED
def test_arrays_are_stored_as_orbax_stores_them(workload, tmp_path, compressed):
    from orbax.checkpoint import v1 as ocp

    context = ocp.Context()
    context.array.saving.use_ocdbt = False
    context.array.saving.use_compression = compressed
    mesh = jax.make_mesh((4,), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    with ocp.Context(context=context):
        ocp.save(tmp_path / "orbax", {"a": jax.device_put(np.stack(workload.pieces), sharding)})
    orbax = json.loads((tmp_path / "orbax" / "state" / "a" / "zarr.json").read_text())

    probes.write_array(workload, compressed=compressed)
    assert metadata(workload, compressed) == orbax


def test_a_read_that_cannot_be_cold_is_not_timed(memory_disk, make):
    workload = make(memory_disk)
    with pytest.raises(scratch.StaysResident):
        tensorstore_read(workload, compressed=False, cache="cold")
