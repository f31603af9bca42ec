"""Growth of the resident set."""

from __future__ import annotations

from orbax_bench_core.measure.collectors.resident_memory import Rss

MIB = 2**20


def test_memory_that_is_touched_and_kept_counts() -> None:
    collector = Rss()
    collector.start()
    kept = b"x" * (64 * MIB)

    (reading,) = collector.stop()

    assert len(kept) / MIB * 0.9 <= reading.value <= len(kept) / MIB * 1.5


def test_the_unit_is_binary_megabytes() -> None:
    collector = Rss()
    collector.start()

    assert collector.stop()[0].unit == "MiB"
