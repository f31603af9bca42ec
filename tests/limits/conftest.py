"""Real data and real probes, at a size that takes no time."""

import os
import tempfile
from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.limits.scratch import make_workload
from tests.support.disks import small_disk

MIB = 1 << 20


@pytest.fixture
def make():
    """Makes a workload in a directory, which a probe would find empty."""

    def make_(directory, *, parallelism=4, repeats=2, num_bytes=4 * MIB, dtype="float32"):
        return make_workload(
            epath.Path(directory),
            num_bytes=num_bytes,
            parallelism=parallelism,
            dtype=dtype,
            repeats=repeats,
        )

    return make_


@pytest.fixture
def workload(tmp_path, make):
    return make(tmp_path)


@pytest.fixture
def memory_disk():
    """A folder in memory, from which no page can be dropped."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        pytest.skip("needs /dev/shm, a file system in memory")
    with tempfile.TemporaryDirectory(dir=shared) as place:
        yield Path(place)


@pytest.fixture
def small_memory_disk(tmp_path):
    """A file system in memory with room for 16 MiB."""
    with small_disk(tmp_path / "disk", "16m") as place:
        yield place
