"""The collectors by key."""

from __future__ import annotations

from orbax_bench_core.measure import collectors


def test_some_collectors_are_opt_in() -> None:
    opt_in = {"tracemalloc", "store_answers", "process_state"}
    assert set(collectors.KEYS) - set(collectors.DEFAULT_KEYS) == opt_in


def test_every_block_can_be_given_further_collectors() -> None:
    with collectors.also_collecting("rss"):
        running = collectors.start(("cpu",))
        collectors.stop(running)
    assert [key for key, _ in running] == ["cpu", "rss"]
    assert collectors.start(("time",)) == []
