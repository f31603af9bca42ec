"""Clock of a block."""

from __future__ import annotations

from orbax_bench_core.measure.collectors import clocks


def test_bytes_give_throughput_in_binary_gigabytes() -> None:
    found = clocks.clock_readings(0.5, 3 * 2**30, ["time"])

    assert ("4_throughput/operation_gbps", 6.0, "GiB/s") in found


def test_no_time_gives_no_throughput() -> None:
    names = [reading.metric for reading in clocks.clock_readings(0.0, 1, ["time"])]

    assert names == ["0_basics/time_s", "5_inventory/operation_bytes"]
