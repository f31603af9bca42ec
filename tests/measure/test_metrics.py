"""Interface of `Metrics` for authors."""

import math
import threading

import pytest

from orbax_bench_core.measure import Metrics, collectors, default_metrics

STEPS = "7_overhead/train_steps"


def test_default_collectors_come_in_the_order_of_the_guide():
    guide = ["time", "rss", "jax_monitoring", "device_memory", "tensorstore"]

    assert [key for key in default_metrics() if key in guide] == guide


def test_a_default_block_gives_the_whole_suite():
    metrics = Metrics()

    with metrics.measure("op"):
        pass

    assert {
        "op_0_basics/time_s",
        "op_0_basics/host_rss_diff_mb",
        "op_6_tensorstore/changed_metric_count",
    } <= metrics.results.keys()


def test_defect_16_a_default_block_logs_nothing(logged):
    with Metrics().measure("op"):
        pass

    assert logged.messages() == []


def test_defect_11_a_name_used_again_keeps_both_blocks():
    metrics = Metrics()

    for _ in range(2):
        with metrics.measure("save", ["time"]):
            pass

    assert list(metrics.results) == ["save_0_basics/time_s", "save[1]_0_basics/time_s"]


def test_occurrences_follow_the_order_of_starting():
    metrics = Metrics()

    with metrics.measure("op", ["time"]), metrics.measure("op", ["time"]):
        pass

    assert [sample.occurrence for sample in metrics.samples] == [1, 0]


def test_an_unknown_metric_key_is_an_error_that_lists_the_keys():
    metrics = Metrics()

    with pytest.raises(ValueError, match="device_memry") as error:
        metrics.measure("op", ["time", "device_memry"])

    assert str(error.value) == (
        "unknown metric key 'device_memry'; did you mean 'device_memory'? The keys are: "
        f"{', '.join(collectors.KEYS)}"
    )
    assert metrics.results == {}


NO_NAME = "cannot name an operation"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda metrics: metrics.measure(""), ValueError, NO_NAME),
        (lambda metrics: metrics.measure("save[1]"), ValueError, NO_NAME),
        (lambda metrics: metrics.record("save[1]", STEPS, 1), ValueError, NO_NAME),
        (lambda metrics: metrics.measure("op", num_bytes=-1), ValueError, "0 or more, got -1"),
        (lambda metrics: metrics.measure("op", "time"), TypeError, r"write \['time'\]"),
        (lambda metrics: metrics.record("op", STEPS, math.nan), ValueError, "a finite number"),
        (lambda metrics: metrics.record("op", STEPS, math.inf), ValueError, "a finite number"),
        (
            lambda metrics: metrics.record("op", "7_overhead/train_step", 1),
            KeyError,
            "nearest: 7_overhead/train_steps",
        ),
    ],
)
def test_what_would_confuse_the_results_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call(Metrics())


def test_threads_lose_no_samples():
    metrics = Metrics()

    def work():
        for _ in range(200):
            with metrics.measure("op", ["time"]):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(sample.occurrence for sample in metrics.samples) == list(range(800))


def test_a_recorded_value_has_the_unit_of_its_metric():
    metrics = Metrics()

    metrics.record("save", "7_overhead/train_lost_s", 2)

    assert metrics.results == {"save_7_overhead/train_lost_s": (2.0, "s")}


def test_a_recorded_value_belongs_to_the_latest_block_of_its_name():
    metrics = Metrics()

    for value in (1, 2):
        with metrics.measure("op", []):
            pass
        metrics.record("op", STEPS, value)

    assert metrics.results == {f"op_{STEPS}": (1.0, "count"), f"op[1]_{STEPS}": (2.0, "count")}
