"""The collectors by key."""

from __future__ import annotations

from orbax_bench_core.measure import collectors


def test_tracemalloc_is_opt_in() -> None:
    assert set(collectors.KEYS) - set(collectors.DEFAULT_KEYS) == {"tracemalloc"}


def test_keys_without_collectors_start_nothing() -> None:
    assert collectors.start(("time",)) == []


def test_collectors_without_notes_say_nothing() -> None:
    running = collectors.start(("rss",))
    collectors.stop(running)

    assert collectors.notes(running) == []
