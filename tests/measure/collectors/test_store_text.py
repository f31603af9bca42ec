"""TensorStore's metrics as text, which keeps no memory, beside the numbers themselves."""

import pytest

from orbax_bench_core.measure.collectors import store_text, tensorstore, thread_pool


class Library:
    """Gives the text of one histogram with two labels, one counter and one gauge."""

    def experimental_collect_prometheus_format_metrics(self, prefix):
        return [
            "# HELP ts_latency_ms latency",
            "# UNIT ts_latency_ms milliseconds",
            "# TYPE ts_latency_ms histogram",
            'ts_latency_ms_count {kind="a"} 3',
            'ts_latency_ms_sum {kind="a"} 4.5',
            'ts_latency_ms_bucket {kind="a", le="1"} 2',
            'ts_latency_ms_bucket {kind="a", le="2M"} 2',
            'ts_latency_ms_bucket {kind="a", le="+Inf"} 3',
            'ts_latency_ms_count {kind="b"} 1',
            'ts_latency_ms_sum {kind="b"} 0.5',
            'ts_latency_ms_bucket {kind="b", le="1"} 1',
            'ts_latency_ms_bucket {kind="b", le="+Inf"} 1',
            "# HELP ts_reads reads",
            'ts_reads {method="get"} 2',
            'ts_reads {method="list"} 5',
            "# HELP ts_delay_ns longest",
            "ts_delay_ns_max 1.5e+06",
        ]


def test_labels_are_summed_and_buckets_count_once():
    found = store_text.read(Library(), "/ts/")
    assert found["ts_latency_ms"] == (0, 4, 5.0, {1.0: 3, 2.0**20: 0, float("inf"): 1})
    assert found["ts_reads"].value == 7
    assert found["ts_delay_ns"].value == 1.5e6


@pytest.fixture
def written(tmp_path):
    """Returns a function that writes and reads an array by TensorStore."""
    library = pytest.importorskip("tensorstore")

    def write(name):
        spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/{name}/"}
        array = library.open(spec, create=True, dtype=library.float32, shape=[8]).result()
        array.write([1.0] * 8).result()
        array.read().result()

    return write


def readings(kind, write, name):
    collector = kind()
    collector.start()
    write(name)
    return {reading.metric: reading.value for reading in collector.stop()}


def test_the_text_gives_the_metrics_that_the_numbers_give(written):
    written("warm")
    outer = tensorstore.TensorStore()
    outer.start()
    with store_text.reading_as_text():
        text = readings(tensorstore.TensorStore, written, "both")
    numbers = {reading.metric: reading.value for reading in outer.stop()}
    exact = {name for name in numbers if name.endswith(("_value_diff", "_count_diff"))}
    assert exact
    assert {name: text[name] for name in exact} == {name: numbers[name] for name in exact}


def test_the_thread_pool_is_read_as_text_too(written):
    written("warm")
    with store_text.reading_as_text():
        found = readings(thread_pool.ThreadPool, written, "text")
    assert found["6_tensorstore/futures_live_count"] >= 0


def test_outside_of_a_soak_nothing_is_read_as_text():
    assert not store_text.as_text()
    with store_text.reading_as_text():
        assert store_text.as_text()
    assert not store_text.as_text()
