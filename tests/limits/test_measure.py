"""Limits measured at a size that takes no time, and the clock that measures them."""

import shutil
import threading
import time
import types

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.limits.measure import measure_limits
from orbax_bench_core.limits.model import Limits
from orbax_bench_core.limits.probes import PROBES, repeated, timed
from orbax_bench_core.reasons import because

MIB = 1 << 20


def take(path, **given):
    defaults = {"num_bytes": 4 * MIB, "parallelism": 2, "repeats": 1}
    return measure_limits(str(path), **{**defaults, **given})


def by_name(limits: Limits):
    return {probe.name: probe for probe in limits.probes}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("a folder with spaces")
    return path, take(path, num_bytes=4 * MIB + 5)


def test_what_is_left_out_says_so_and_the_rest_is_measured(tmp_path):
    plain = [name for name in PROBES if name.endswith("_uncompressed")]
    limits = take(tmp_path, left_out=plain)
    said = {probe.name for probe in limits.probes if probe.reason == because("not_compared")}
    assert said == set(plain)
    assert by_name(limits)["tensorstore_read_warm"].seconds


def test_what_was_measured_is_stated(found):
    path, limits = found
    assert limits.path == str(path)
    assert (limits.requested_bytes, limits.num_bytes) == (4 * MIB + 5, 4 * MIB)
    assert (limits.num_threads, limits.dtype, limits.capped_by) == (2, "float32", ())
    assert limits.surroundings.free_disk_bytes > 0
    assert limits.provenance["devices"]["platform"] == "cpu"


@pytest.mark.slow
def test_the_devices_are_the_default_parallelism(tmp_path):
    assert take(tmp_path, parallelism=None).num_threads == 8


@pytest.mark.nightly
def test_a_small_disk_in_memory_caps_the_bytes_and_has_no_cold_reads(small_memory_disk):
    limits = take(small_memory_disk, num_bytes=64 * MIB)
    assert limits.num_bytes == 8 * MIB
    (capped,) = limits.capped_by
    assert (capped.values["asked"], capped.values["place"]) == (64 * MIB, "disk")
    cold = [probe for probe in limits.probes if "cold" in probe.name]
    assert len(cold) == 3
    assert all(probe.reason == because("stays_resident", share=1.0) for probe in cold)


def test_a_probe_that_fails_leaves_the_others(tmp_path):
    probes = by_name(take(tmp_path, dtype="uint4"))
    assert probes["write_fsync"].seconds
    (reason,) = probes["tensorstore_write"].reason
    assert "uint4" in reason.values["said"]
    assert "[" not in reason.values["said"]


@pytest.mark.nightly
def test_a_disk_that_takes_nothing_is_an_error(small_memory_disk, monkeypatch):
    # What another process may do between the look at the disk and the first write.
    roomy = types.SimpleNamespace(free=200 * MIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: roomy)
    with pytest.raises(UserError, match=r"nothing can be written: .*No space left"):
        take(small_memory_disk, num_bytes=64 * MIB)
    assert list(small_memory_disk.iterdir()) == []


def test_tasks_run_side_by_side():
    meeting = threading.Barrier(3)
    timed([lambda: meeting.wait(60)] * 3)
    assert not meeting.broken


@pytest.mark.slow
def test_freeing_what_a_task_returns_is_not_measured():
    freed = []

    class Slow:
        def __del__(self):
            freed.append(time.perf_counter())
            time.sleep(0.2)

    begun = time.perf_counter()
    assert begun + timed([Slow]) <= freed[0]


def test_what_a_task_raises_is_raised():
    def fail():
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        timed([lambda: None, fail])


def test_the_first_of_all_repeats_is_discarded():
    times = iter([9.0, 1.0, 2.0, 3.0])
    assert repeated(3, lambda: next(times)) == [1.0, 2.0, 3.0]
