"""The probes of memory: memory_copy, first_touch, host_to_device and device_to_host."""

import mmap
import resource
from pathlib import Path

import pytest

from orbax_bench_core.limits.probes import (
    device_to_host,
    first_touch,
    host_to_device,
    memory_copy,
    on_devices,
)

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.parametrize("probe", [memory_copy, first_touch, host_to_device, device_to_host])
def test_there_is_one_time_per_repeat(workload, probe):
    times = probe(workload)
    assert len(times) == 2
    assert min(times) > 0


@pytest.mark.skipif(
    HUGE.exists() and "[always]" in HUGE.read_text(), reason="huge pages: one fault for 512 pages"
)
def test_every_page_of_every_repeat_is_fresh(workload):
    before = page_faults()
    first_touch(workload)
    assert page_faults() - before >= 3 * workload.num_bytes // mmap.PAGESIZE


def test_more_pieces_than_devices_go_round(tmp_path, make):
    arrays = on_devices(make(tmp_path, parallelism=9))
    assert arrays[8].device == arrays[0].device
