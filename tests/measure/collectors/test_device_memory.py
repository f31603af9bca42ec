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

    def __init__(self, *peaks: int) -> None:
        self._peaks = iter(peaks)

    def memory_stats(self) -> dict[str, int]:
        return {"peak_bytes_in_use": next(self._peaks)}


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The local devices, as the collector sees them."""
    fakes: list[Any] = []
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
    # The first reading of each device finds out whether it has the statistic.
    devices += [FakeDevice(0, 5 * GIB, 6 * GIB), FakeDevice(0, GIB, 4 * GIB)]

    assert collect()["7_memory/device_hbm_peak_diff_gb"] == 3.0


def test_one_device_without_the_statistic_hides_the_peak(devices: list[Any]) -> None:
    class Bare:
        def memory_stats(self) -> None:
            return None

    devices += [FakeDevice(0, 0, GIB), Bare()]

    assert "7_memory/device_hbm_peak_diff_gb" not in collect()


def test_a_device_that_refuses_the_question_gives_no_peak(devices: list[Any]) -> None:
    class Refusing:
        def memory_stats(self) -> None:
            raise jax.errors.JaxRuntimeError("UNIMPLEMENTED")

    devices.append(Refusing())

    assert "7_memory/device_hbm_peak_diff_gb" not in collect()


def test_devices_are_asked_once_whether_they_have_the_statistic(devices: list[Any]) -> None:
    asked: list[int] = []

    class Counting:
        def memory_stats(self) -> None:
            asked.append(1)

    devices.append(Counting())

    collect()
    collect()

    assert len(asked) == 1


def test_measuring_does_not_initialize_a_backend() -> None:
    code = (
        "from orbax_bench_core.measure import Metrics\n"
        "with Metrics().measure('op'): pass\n"
        "from jax._src import xla_bridge\n"
        "print(xla_bridge.backends_are_initialized())"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"
