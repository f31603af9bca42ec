"""Memory of devices and of Python."""

import subprocess
import sys
import tracemalloc

import jax
import jax.numpy as jnp
import pytest

from orbax_bench_core.measure import Metrics
from orbax_bench_core.measure.collectors import device_memory
from orbax_bench_core.measure.collectors.device_memory import DeviceMemory

GIB = 2**30


class FakeDevice:
    """Has the statistic that CPU devices lack, in GiB."""

    def __init__(self, *peaks, in_use=(0, 0)):
        # The first reading of each device finds out whether it has the statistics.
        self._peaks = iter((0, *peaks))
        self._in_use = iter((0, *in_use))

    def memory_stats(self):
        return {
            "bytes_in_use": next(self._in_use) * GIB,
            "peak_bytes_in_use": next(self._peaks) * GIB,
        }


@pytest.fixture
def devices(monkeypatch):
    """The local devices, as the collector sees them."""
    fakes = []
    jax.devices()  # before a backend is up the collector asks nothing
    monkeypatch.setattr(jax, "local_devices", lambda: fakes)
    device_memory._devices_with_peaks.cache_clear()
    yield fakes
    device_memory._devices_with_peaks.cache_clear()


def collect():
    collector = DeviceMemory()
    collector.start()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_arrays_that_stay_alive_are_counted():
    jax.devices()
    collector = DeviceMemory()
    collector.start()
    kept = [jnp.full((), index) for index in range(3)]

    found = {reading.metric: reading.value for reading in collector.stop()}

    assert found["7_memory/jax_live_arrays_count_delta"] == len(kept)


def test_a_device_without_the_statistic_gives_no_peak():
    jax.devices()

    assert "7_memory/device_hbm_peak_diff_gb" not in collect()


class Bare:
    def memory_stats(self):
        return None


class Refusing:
    def memory_stats(self):
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED")


@pytest.mark.parametrize(
    ("present", "metric", "value"),
    [
        ([FakeDevice(5, 6), FakeDevice(1, 4)], "peak_diff_gb", 3.0),
        ([FakeDevice(5, 5), FakeDevice(1, 1)], "peak_is_bound", 1.0),
        ([FakeDevice(9, 9, in_use=(1, 2)), FakeDevice(9, 9, in_use=(1, 7))], "in_use_gb", 7.0),
        ([FakeDevice(9, 9, in_use=(6, 7)), FakeDevice(9, 9, in_use=(0, 4))], "in_use_diff_gb", 4.0),
        ([FakeDevice(0, 1), Bare()], "peak_diff_gb", None),
        ([Refusing()], "peak_diff_gb", None),
    ],
)
def test_memory_is_that_of_the_device_with_most_where_all_tell_it(devices, present, metric, value):
    devices += present
    assert collect().get(f"7_memory/device_hbm_{metric}") == value


@pytest.mark.slow
def test_measuring_does_not_initialize_a_backend():
    code = (
        "from orbax_bench_core.measure import Metrics\n"
        "with Metrics().measure('op'): pass\n"
        "from jax._src import xla_bridge\n"
        "print(xla_bridge.backends_are_initialized())"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"


MIB = 2**20
KEYS = ["tracemalloc"]
PYTHON_PEAK = "7_memory/tracemalloc_peak_diff_mb"


def test_peaks_that_are_gone_at_the_end_count_for_the_block_in_which_they_were():
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        len(bytes(8 * MIB))
        with metrics.measure("inner", KEYS):
            len(bytes(2 * MIB))

    assert metrics.results[f"outer_{PYTHON_PEAK}"][0] == pytest.approx(8, abs=0.5)
    assert metrics.results[f"inner_{PYTHON_PEAK}"][0] == pytest.approx(2, abs=0.5)


@pytest.mark.parametrize("before", [False, True])
def test_tracing_ends_with_the_last_block_unless_others_began_it(before):
    if before:
        tracemalloc.start()
    with Metrics().measure("op", KEYS):
        inside = tracemalloc.is_tracing()
    after = tracemalloc.is_tracing()
    tracemalloc.stop()
    assert (inside, after) == (True, before)


def test_the_top_sites_are_kept_by_block():
    metrics = Metrics()
    kept = []

    for _ in range(2):
        with metrics.measure("op", KEYS):
            kept.append(bytes(MIB))

    assert list(metrics.notes) == ["op", "op[1]"]


def test_the_top_sites_are_logged_with_the_name_of_the_block(logged):
    with Metrics().measure("op", KEYS):
        kept = bytes(MIB)

    assert len(kept) == MIB
    (message,) = logged.messages()
    assert message.startswith("op: Python's top 15 allocation sites")


@pytest.mark.slow
def test_finding_the_sites_of_an_inner_block_is_no_peak_of_the_outer_one():
    # Thousands of sites, which a snapshot copies into objects of its own.
    many = compile(f"[\n{chr(10).join('object(),' for _ in range(5_000))}]", "many", "eval")
    metrics = Metrics()
    kept = []

    with metrics.measure("outer", KEYS):
        kept.append(eval(many))
        held, _ = tracemalloc.get_traced_memory()
        with metrics.measure("inner", KEYS):
            pass

    assert metrics.results[f"outer_{PYTHON_PEAK}"][0] <= held / MIB + 0.5
