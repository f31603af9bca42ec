"""The probes of plain files, of memory and of raw TensorStore."""

import dataclasses
import functools
import json
import mmap
import resource
from pathlib import Path

import jax
import numpy as np
import pytest

from orbax_bench_core.limits import probes, scratch
from orbax_bench_core.limits.probes import (
    first_touch,
    read_files,
    tensorstore_read,
    tensorstore_write,
    write_fsync,
)
from orbax_bench_core.worker import page_cache

READS = [functools.partial(read_files, cache=cache) for cache in ("cold", "warm")]
HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
COMPRESSED = pytest.mark.parametrize("compressed", [True, False])


def test_written_pages_are_not_left_to_the_kernel(workload, monkeypatch):
    synced = []
    real = scratch.os.fsync
    monkeypatch.setattr(scratch.os, "fsync", lambda number: (synced.append(number), real(number)))
    write_fsync(workload)
    files_and_folders, runs = 2 * len(workload.pieces), workload.repeats + 1
    assert len(synced) == files_and_folders * runs


@pytest.mark.parametrize(("probe", "share"), [(READS[0], 0.0), (READS[1], 1.0)])
def test_pages_are_as_the_name_says_before_each_read(workload, probe, share, monkeypatch):
    found = []
    real = scratch.read

    def read(path, buffer):
        found.append(page_cache.resident_share(path.parent))
        real(path, buffer)

    monkeypatch.setattr(scratch, "read", read)
    one = {"pieces": workload.pieces[:1], "buffers": workload.buffers[:1]}
    probe(dataclasses.replace(workload, **one))
    assert found == [share] * 3


@pytest.mark.parametrize(
    "probe", [READS[0], functools.partial(tensorstore_read, compressed=False, cache="cold")]
)
def test_a_read_that_cannot_be_cold_is_not_timed(memory_disk, make, probe):
    with pytest.raises(scratch.StaysResident):
        probe(make(memory_disk))


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(
    HUGE.exists() and "[always]" in HUGE.read_text(), reason="huge pages: one fault for 512 pages"
)
def test_every_page_of_every_repeat_is_fresh(workload):
    before = page_faults()
    first_touch(workload)
    assert page_faults() - before >= 3 * workload.num_bytes // mmap.PAGESIZE


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
    folder = probes.array_folder(workload, compressed=compressed)
    assert json.loads((folder / "zarr.json").read_text()) == orbax
