"""Live arrays and device memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from orbax_bench_core.measure.collectors import device_memory
from orbax_bench_core.measure.collectors.device_memory import DeviceMemory

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
    device_memory._devices_with_peaks.cache_clear()
    yield fakes
    device_memory._devices_with_peaks.cache_clear()


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
