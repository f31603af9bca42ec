"""Memory of devices and of Python."""

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from orbax_bench_core.measure import Metrics
from orbax_bench_core.measure.collectors import memory
from orbax_bench_core.measure.collectors.memory import DeviceMemory
from tests.measure.conftest import Logged

GIB = 2**30


class FakeDevice:
    """Has the statistic that CPU devices lack."""

    def __init__(self, *peaks: int, in_use: tuple[int, int] = (0, 0)) -> None:
        # The first reading of each device finds out whether it has the statistics.
        self._peaks = iter((0, *peaks))
        self._in_use = iter((0, *in_use))

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_in_use": next(self._in_use), "peak_bytes_in_use": next(self._peaks)}


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The local devices, as the collector sees them."""
    fakes: list[Any] = []
    jax.devices()  # before a backend is up the collector asks nothing
    monkeypatch.setattr(jax, "local_devices", lambda: fakes)
    memory._devices_with_peaks.cache_clear()
    yield fakes
    memory._devices_with_peaks.cache_clear()


def collect() -> dict[str, float]:
    collector = DeviceMemory()
    collector.start()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_arrays_that_stay_alive_are_counted() -> None:
    jax.devices()
    collector = DeviceMemory()
    collector.start()
    kept = [jnp.full((), index) for index in range(3)]

    found = {reading.metric: reading.value for reading in collector.stop()}

    assert found["7_memory/jax_live_arrays_count_delta"] == len(kept)


def test_a_device_without_the_statistic_gives_no_peak() -> None:
    jax.devices()

    assert "7_memory/device_hbm_peak_diff_gb" not in collect()


def test_the_peak_is_that_of_the_device_where_it_rose_most(devices: list[Any]) -> None:
    devices += [FakeDevice(5 * GIB, 6 * GIB), FakeDevice(GIB, 4 * GIB)]

    assert collect()["7_memory/device_hbm_peak_diff_gb"] == 3.0


def test_a_peak_from_before_the_block_is_marked_as_a_bound(devices: list[Any]) -> None:
    devices += [FakeDevice(5 * GIB, 5 * GIB), FakeDevice(GIB, GIB)]

    assert collect()["7_memory/device_hbm_peak_is_bound"] == 1.0


def test_memory_in_use_is_that_of_the_fullest_device(devices: list[Any]) -> None:
    devices += [
        FakeDevice(9, 9, in_use=(GIB, 2 * GIB)),
        FakeDevice(9, 9, in_use=(GIB, 7 * GIB)),
    ]

    assert collect()["7_memory/device_hbm_in_use_gb"] == 7.0


def test_memory_in_use_grows_where_it_grew_most(devices: list[Any]) -> None:
    devices += [
        FakeDevice(9, 9, in_use=(6 * GIB, 7 * GIB)),
        FakeDevice(9, 9, in_use=(0, 4 * GIB)),
    ]

    assert collect()["7_memory/device_hbm_in_use_diff_gb"] == 4.0


def test_one_device_without_the_statistic_hides_the_peak(devices: list[Any]) -> None:
    class Bare:
        def memory_stats(self) -> None:
            return None

    devices += [FakeDevice(0, GIB), Bare()]

    assert "7_memory/device_hbm_peak_diff_gb" not in collect()


def test_a_device_that_refuses_the_question_gives_no_peak(devices: list[Any]) -> None:
    class Refusing:
        def memory_stats(self) -> None:
            raise jax.errors.JaxRuntimeError("UNIMPLEMENTED")

    devices.append(Refusing())

    assert "7_memory/device_hbm_peak_diff_gb" not in collect()


@pytest.mark.slow
def test_measuring_does_not_initialize_a_backend() -> None:
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


def test_a_peak_that_is_gone_at_the_end_still_counts() -> None:
    metrics = Metrics()

    with metrics.measure("op", KEYS):
        len(bytes(8 * MIB))

    assert metrics.results[f"op_{PYTHON_PEAK}"][0] == pytest.approx(8, abs=0.5)


def test_an_inner_block_does_not_hide_the_peak_of_the_outer_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        len(bytes(8 * MIB))
        with metrics.measure("inner", KEYS):
            pass

    assert metrics.results[f"outer_{PYTHON_PEAK}"][0] == pytest.approx(8, abs=0.5)


def test_the_peak_of_the_outer_block_does_not_count_for_the_inner_one() -> None:
    metrics = Metrics()

    with metrics.measure("outer", KEYS):
        len(bytes(8 * MIB))
        with metrics.measure("inner", KEYS):
            len(bytes(2 * MIB))

    assert metrics.results[f"inner_{PYTHON_PEAK}"][0] == pytest.approx(2, abs=0.5)


def test_tracing_ends_with_the_last_block() -> None:
    with Metrics().measure("op", KEYS):
        inside = tracemalloc.is_tracing()

    assert (inside, tracemalloc.is_tracing()) == (True, False)


def test_tracing_that_others_began_goes_on() -> None:
    tracemalloc.start()
    try:
        with Metrics().measure("op", KEYS):
            pass
        still = tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()

    assert still


def test_the_top_sites_are_kept_by_block() -> None:
    metrics = Metrics()
    kept = []

    for _ in range(2):
        with metrics.measure("op", KEYS):
            kept.append(bytes(MIB))

    assert list(metrics.notes) == ["op", "op[1]"]


def test_the_top_sites_are_logged_with_the_name_of_the_block(
    logged: Logged,
) -> None:
    with Metrics().measure("op", KEYS):
        kept = bytes(MIB)

    assert len(kept) == MIB
    (message,) = logged.messages()
    assert message.startswith("op: Python's top 15 allocation sites")


@pytest.mark.slow
def test_finding_the_sites_of_an_inner_block_is_no_peak_of_the_outer_one() -> None:
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
