"""The probes of plain files: write_fsync and read_files."""

import dataclasses
import functools

import pytest

from orbax_bench_core.limits import scratch
from orbax_bench_core.limits.probes import read_files, write_fsync
from orbax_bench_core.worker import page_cache

READS = [functools.partial(read_files, cache=cache) for cache in ("cold", "warm")]


@pytest.mark.parametrize("probe", [write_fsync, *READS])
def test_there_is_one_time_per_repeat(workload, probe):
    times = probe(workload)
    assert len(times) == 2
    assert min(times) > 0


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


def test_a_read_that_cannot_be_cold_is_not_timed(memory_disk, make):
    with pytest.raises(scratch.StaysResident):
        read_files(make(memory_disk), cache="cold")
