"""A webhook on this machine: keeps what is posted, and answers as it is told."""

import http.server
import json
import threading
import time

import pytest


class Loopback(http.server.ThreadingHTTPServer):
    """Keeps the path and the JSON of each message.

    Attributes:
        posted: Path and message of each request.
        status: What it answers.
        hang_s: Seconds of silence before each answer.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted = []
        self.status = 200
        self.hang_s = 0.0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/services/S3CR3T?key=S3CR3T"

    @property
    def states(self):
        return [message["state"] for _, message in self.posted]


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.posted.append((self.path, json.loads(self.rfile.read(length))))
        time.sleep(self.server.hang_s)
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/other")
        self.end_headers()

    def do_GET(self):
        self.server.posted.append((self.path, None))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def webhook(monkeypatch):
    """A webhook that listens."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = Loopback()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
