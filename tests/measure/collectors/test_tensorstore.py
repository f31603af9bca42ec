"""TensorStore's key-value stores, and its thread pool."""

import contextlib
import functools
import http.server
import threading
import time
import zipfile
from collections import Counter

import numpy as np
import pytest
import tensorstore as ts

from orbax_bench_core.measure import known_metrics
from orbax_bench_core.measure.collectors import tensorstore
from orbax_bench_core.measure.collectors.tensorstore import TensorStore
from orbax_bench_core.measure.collectors.thread_pool import ThreadPool

FILE = "6_tensorstore/tensorstore_kvstore_file_"


def write(path, value):
    store = ts.KvStore.open({"driver": "file", "path": f"{path}/"}).result()
    store.write("key", value).result()


def collect(operation):
    collector = TensorStore()
    collector.start()
    operation()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_bytes_written_are_exact(tmp_path):
    found = collect(lambda: write(tmp_path, b"x" * 1_234_567))

    assert found[f"{FILE}bytes_written_value_diff"] == 1_234_567


def test_latencies_have_a_count(tmp_path):
    def write_thrice():
        for _ in range(3):
            write(tmp_path, b"x")

    found = collect(write_thrice)

    assert found[f"{FILE}write_latency_ms_count_diff"] == 3


def test_changes_of_other_threads_are_seen(tmp_path):
    def work():
        thread = threading.Thread(target=write, args=(tmp_path, b"abc"))
        thread.start()
        thread.join()

    assert collect(work)[f"{FILE}bytes_written_value_diff"] == 3


@contextlib.contextmanager
def served(folder):
    """Serves a folder over HTTP, and yields its port."""
    handler = functools.partial(SilentHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def stores(folder, port):
    """Specifications of a store of each kind that a laptop has, with a value under `key`."""
    files = {"driver": "file", "path": f"{folder}/"}
    zipped = folder / "zipped"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("key", b"value")
    return {
        "file": files,
        "ocdbt": {"driver": "ocdbt", "base": files},
        "zip": {"driver": "zip", "base": {"driver": "file", "path": str(zipped)}},
        "http": {"driver": "http", "base_url": f"http://127.0.0.1:{port}"},
    }


def test_a_request_counts_for_its_own_block_however_quick_it_is(tmp_path):
    missed = Counter()
    with served(tmp_path) as port:
        for kind, spec in stores(tmp_path, port).items():
            store = ts.KvStore.open(spec).result()
            if kind in {"file", "ocdbt"}:
                store.write("key", b"value").result()
            for _ in range(100):
                found = collect(lambda: store.read("key").result())  # noqa: B023
                read = found.get(f"6_tensorstore/tensorstore_kvstore_{kind}_read_value_diff")
                missed[kind] += read != 1

    assert not +missed


class FakeLibrary:
    """A TensorStore whose metrics a test sets: labels, latencies and delays come by chance."""

    def __init__(self):
        self.metrics = []

    def experimental_collect_prometheus_format_metrics(self, prefix):
        stem = prefix.lstrip("/").replace("/", "_")
        return [line for line in self.metrics if f" {stem}" in f" {line}"]


def collect_from(before, after, kind=TensorStore):
    library = FakeLibrary()
    collector = kind()
    collector._library = library
    library.metrics = before
    collector.start()
    library.metrics = after
    return {reading.metric: reading.value for reading in collector.stop()}


def latency(count, mean, **buckets):
    name = "tensorstore_kvstore_file_read_latency_ms"
    ends = {key.removeprefix("below_"): number for key, number in buckets.items()}
    return [
        f"# HELP {name} latency",
        f"# TYPE {name} histogram",
        f"{name}_count {count}",
        f"{name}_sum {count * mean:g}",
        *(f'{name}_bucket {{le="{end}"}} {n}' for end, n in {**ends, "+Inf": count}.items()),
    ]


def test_quantiles_are_bounds_of_the_observations_of_the_block():
    found = collect_from(
        latency(1000, 0.0, below_1=1000), latency(1100, 0.0, below_1=1060, below_4=38, below_512=2)
    )

    assert found[f"{FILE}read_latency_ms_p50"] == 1.0
    assert found[f"{FILE}read_latency_ms_p99"] == 512.0


def test_a_metric_that_appears_counts_from_zero():
    found = collect_from([], latency(2, 3.0))

    assert found[f"{FILE}read_latency_ms_count_diff"] == 2


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("tensorstore_kvstore_file_bytes_read_value_diff", "bytes"),
        ("tensorstore_kvstore_gcs_bytes_written_value_diff", "bytes"),
        ("tensorstore_kvstore_s3_read_latency_ms_count_diff", "count"),
        ("tensorstore_kvstore_s3_read_latency_ms_mean", "ms"),
        ("tensorstore_kvstore_s3_read_latency_ms_p99", "ms"),
        ("tensorstore_kvstore_ocdbt_indirect_data_write_size_mean", "bytes"),
        ("tensorstore_kvstore_file_batch_read_value_diff", "count"),
        ("tensorstore_cache_hit_count_value_diff", "count"),
    ],
)
def test_units_follow_from_names_and_a_shorter_latency_is_better(name, unit):
    metric = known_metrics.lookup(f"6_tensorstore/{name}")
    assert metric.unit == unit
    assert (metric.better == "lower") == (unit == "ms")


@pytest.mark.parametrize(
    "name", ["6_tensorstore/nonsense", "6_tensorstore/tensorstore_kvstore_x", "0_basics/x_mean"]
)
def test_names_of_no_tensorstore_metric_do_not_resolve(name):
    assert tensorstore.resolve(name) is None


QUEUE = "6_tensorstore/thread_pool_queue_s"
MAX_DELAY = "6_tensorstore/thread_pool_max_delay_s"
LIVE = "6_tensorstore/futures_live_count"


def pool_metric(name, value, kind=""):
    return [f"# HELP tensorstore_{name} of threads", f"tensorstore_{name}{kind} {value:g}"]


SHORT, LONG = (pool_metric("thread_pool_max_delay_ns", value, "_max") for value in (1e6, 3e6))
ALIVE = pool_metric("futures_live", 4)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            pool_metric("thread_pool_total_queue_time_ns", 1e9),
            pool_metric("thread_pool_total_queue_time_ns", 3.5e9),
            {QUEUE: pytest.approx(2.5)},
            id="nanoseconds become seconds",
        ),
        pytest.param(
            [],
            pool_metric("thread_pool_started", 3),
            {"6_tensorstore/thread_pool_started_count": 3},
            id="a count that appears counts from zero",
        ),
        pytest.param(SHORT, LONG, {MAX_DELAY: pytest.approx(0.003)}, id="a longer delay"),
        pytest.param(SHORT, SHORT, {}, id="an older delay"),
        pytest.param(ALIVE, ALIVE, {LIVE: 4}, id="a state and no difference"),
    ],
)
def test_what_the_thread_pool_did(before, after, expected):
    assert collect_from(before, after, ThreadPool) == expected


@pytest.mark.slow
def test_work_of_the_library_has_its_waiting(tmp_path):
    collector = ThreadPool()
    collector.start()
    store = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{tmp_path}/"},
        create=True,
        dtype=ts.float32,
        shape=[256, 256],
        chunk_layout=ts.ChunkLayout(chunk_shape=[16, 256]),
    ).result()
    store.write(np.ones((256, 256), np.float32)).result()
    deadline = time.monotonic() + 60  # the library reports when its threads have fallen idle
    while not any(one.metric == QUEUE for one in collector.stop()):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    readings = collector.stop()

    assert {one.metric: one.value for one in readings}[QUEUE] > 0
    assert [known_metrics.lookup(one.metric).unit for one in readings] == [
        one.unit for one in readings
    ]
