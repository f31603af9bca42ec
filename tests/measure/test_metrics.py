"""What an author sees of `Metrics`."""

from __future__ import annotations

import logging
import threading

import pytest

from orbax_bench_core.measure import Metrics, default_metrics


def test_default_collectors_come_in_the_order_of_the_guide() -> None:
    assert default_metrics() == ["time", "rss", "jax_monitoring", "device_memory", "tensorstore"]


def test_defaults_cannot_be_changed_from_outside() -> None:
    default_metrics().append("tracemalloc")

    assert "tracemalloc" not in default_metrics()


def test_a_default_block_gives_the_whole_suite() -> None:
    metrics = Metrics()

    with metrics.measure("op"):
        pass

    assert {
        "op_0_basics/time_s",
        "op_0_basics/host_rss_diff_mb",
        "op_6_tensorstore/changed_metric_count",
    } <= metrics.results.keys()


def test_keys_choose_the_collectors() -> None:
    metrics = Metrics()

    with metrics.measure("op", ["rss"]):
        pass

    assert list(metrics.results) == ["op_0_basics/host_rss_diff_mb"]


def test_a_collector_named_twice_runs_once() -> None:
    metrics = Metrics()

    with metrics.measure("op", ["time", "rss", "rss", "time"]):
        pass

    assert [sample.metric for sample in metrics.samples] == [
        "0_basics/time_s",
        "0_basics/host_rss_diff_mb",
    ]


def test_results_carry_value_and_unit() -> None:
    metrics = Metrics()

    with metrics.measure("op", ["time"]):
        pass

    assert metrics.results == {"op_0_basics/time_s": (metrics.samples[0].value, "s")}


def test_a_name_used_again_keeps_both_blocks() -> None:
    metrics = Metrics()

    for _ in range(2):
        with metrics.measure("save", ["time"]):
            pass

    assert list(metrics.results) == ["save_0_basics/time_s", "save[1]_0_basics/time_s"]


def test_occurrences_count_per_metrics_object() -> None:
    for _ in range(2):
        metrics = Metrics()
        with metrics.measure("save", ["time"]):
            pass

    assert metrics.samples[0].occurrence == 0


def test_occurrences_follow_the_order_of_starting() -> None:
    metrics = Metrics()

    with metrics.measure("op", ["time"]), metrics.measure("op", ["time"]):
        pass

    assert [sample.occurrence for sample in metrics.samples] == [1, 0]


def test_an_unknown_collector_is_ignored_with_the_nearest_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()

    with metrics.measure("op", ["time", "device_memry"]):
        pass

    assert list(metrics.results) == ["op_0_basics/time_s"]
    assert "unknown collector 'device_memry' is ignored; did you mean 'device_memory'?" in (
        caplog.text
    )


def test_an_unknown_collector_does_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()

    for _ in range(3):
        with metrics.measure("op", ["timing"]):
            pass

    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("name", ["", "save[1]"])
def test_a_name_that_would_confuse_the_keys_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name an operation"):
        Metrics().measure(name)


def test_negative_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="num_bytes must be 0 or more, got -1"):
        Metrics().measure("op", num_bytes=-1)


def test_one_string_is_not_a_list_of_collectors() -> None:
    with pytest.raises(TypeError, match=r"write \['time'\]"):
        Metrics().measure("op", "time")


def test_threads_lose_no_samples() -> None:
    metrics = Metrics()

    def work() -> None:
        for _ in range(200):
            with metrics.measure("op", ["time"]):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(sample.occurrence for sample in metrics.samples) == list(range(800))


def test_the_name_is_kept() -> None:
    assert Metrics(name="benchmark").name == "benchmark"
