"""TensorStore's metrics as text, and answers of a store that are no success."""

import http.server
import threading

import pytest
import tensorstore as ts

from orbax_bench_core.measure.collectors import store_metrics, tensorstore
from orbax_bench_core.measure.collectors.store_answers import StoreAnswers


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
            'ts_latency_ms_bucket {kind="a", le="2M"} 0',
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
    found = store_metrics.read(Library(), "/ts/")
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


def test_a_block_has_what_was_written_and_read_in_it(written):
    written("warm")
    collector = tensorstore.TensorStore()
    collector.start()
    written("counted")
    found = {reading.metric: reading.value for reading in collector.stop()}
    # Metadata and one chunk of 32 bytes.
    assert found["6_tensorstore/tensorstore_kvstore_file_write_latency_ms_count_diff"] == 2
    assert found["6_tensorstore/tensorstore_kvstore_file_bytes_read_value_diff"] >= 32


# Recorded behind a proxy that answers 503 and 429 to some requests.
QUIET = (
    "# HELP tensorstore_http_response_codes HTTP response status code counts",
    'tensorstore_http_response_codes {code="200"} 11',
    'tensorstore_http_response_codes {code="404"} 4',
    'tensorstore_http_response_codes {code="503"} 1',
    "# HELP tensorstore_kvstore_gcs_retries gcs count of all retried requests (read/write/delete)",
    "tensorstore_kvstore_gcs_retries 1",
)
TROUBLED = (
    'tensorstore_http_response_codes {code="200"} 30',
    'tensorstore_http_response_codes {code="404"} 9',
    'tensorstore_http_response_codes {code="429"} 2',
    'tensorstore_http_response_codes {code="503"} 4',
    "tensorstore_kvstore_gcs_retries 6",
)


class AnswersLibrary:
    """Prints recorded counters, one set per reading."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def experimental_collect_prometheus_format_metrics(self, prefix):
        stem = prefix.strip("/").replace("/", "_")
        lines = [line for line in self.readings[0] if stem in line]
        if prefix.endswith("retries"):  # the last of one reading
            self.readings.pop(0)
        return lines


def collect(*readings):
    collector = StoreAnswers()
    collector._library = AnswersLibrary(*readings)
    collector.start()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_answers_are_told_apart_by_their_code():
    assert collect(QUIET, TROUBLED) == {
        "6_tensorstore/http_404_count": 5,
        "6_tensorstore/http_429_count": 2,
        "6_tensorstore/http_503_count": 3,
        "6_tensorstore/gcs_retries_count": 5,
    }


def test_what_was_counted_before_the_block_is_no_trouble():
    assert collect(TROUBLED, TROUBLED) == {}


@pytest.fixture
def server():
    """Answers 503, then 429, then with success."""
    codes = [503, 429]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(codes.pop(0) if codes else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
def test_the_installed_tensorstore_prints_counters_like_that(server):
    collector = StoreAnswers()
    collector.start()
    ts.KvStore.open({"driver": "http", "base_url": server}).result().read("a").result()
    found = {reading.metric: reading.value for reading in collector.stop()}
    assert found == {"6_tensorstore/http_503_count": 1, "6_tensorstore/http_429_count": 1}
