"""Clock of a block."""

from __future__ import annotations

from orbax_bench_core.measure.collectors import clocks


def test_without_bytes_there_is_only_the_time() -> None:
    assert clocks.clock_readings(0.5, None, ["time"]) == [("0_basics/time_s", 0.5, "s")]


def test_bytes_give_throughput_in_binary_gigabytes() -> None:
    found = clocks.clock_readings(0.5, 3 * 2**30, ["time"])

    assert ("4_throughput/operation_gbps", 6.0, "GiB/s") in found


def test_bytes_are_exact() -> None:
    found = clocks.clock_readings(0.5, 2**40 + 1, ["time"])

    assert ("5_inventory/operation_bytes", 2**40 + 1, "bytes") in found


def test_no_time_gives_no_throughput() -> None:
    names = [reading.metric for reading in clocks.clock_readings(0.0, 1, ["time"])]

    assert names == ["0_basics/time_s", "5_inventory/operation_bytes"]


def test_a_block_without_the_key_has_no_time() -> None:
    assert clocks.clock_readings(0.5, None, ["rss"]) == []
