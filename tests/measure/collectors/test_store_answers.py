"""Counts of an object store's answers, from counters as TensorStore 0.1.86 prints them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest
import tensorstore as ts

from orbax_bench_core.measure.collectors.store_answers import StoreAnswers

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


class Library:
    """Prints recorded counters, one set per reading."""

    def __init__(self, *readings: tuple[str, ...]) -> None:
        self.readings = list(readings)

    def experimental_collect_prometheus_format_metrics(self, prefix: str) -> list[str]:
        stem = prefix.strip("/").replace("/", "_")
        lines = [line for line in self.readings[0] if stem in line]
        if prefix.endswith("retries"):  # the last of one reading
            self.readings.pop(0)
        return lines


def collect(*readings: tuple[str, ...]) -> dict[str, float]:
    collector = StoreAnswers()
    collector._library = Library(*readings)
    collector.start()
    return {reading.metric: reading.value for reading in collector.stop()}


def test_answers_are_told_apart_by_their_code() -> None:
    assert collect(QUIET, TROUBLED) == {
        "6_tensorstore/http_404_count": 5,
        "6_tensorstore/http_429_count": 2,
        "6_tensorstore/http_503_count": 3,
        "6_tensorstore/gcs_retries_count": 5,
    }


def test_what_was_counted_before_the_block_is_no_trouble() -> None:
    assert collect(TROUBLED, TROUBLED) == {}


@pytest.fixture
def server() -> Iterator[str]:
    """Answers 503, then 429, then with success."""
    codes = [503, 429]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(codes.pop(0) if codes else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
def test_the_installed_tensorstore_prints_counters_like_that(server: str) -> None:
    collector = StoreAnswers()
    collector.start()
    ts.KvStore.open({"driver": "http", "base_url": server}).result().read("a").result()
    found = {reading.metric: reading.value for reading in collector.stop()}
    assert found == {"6_tensorstore/http_503_count": 1, "6_tensorstore/http_429_count": 1}
