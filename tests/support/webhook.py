"""A webhook on this machine: keeps what is posted, and answers as it is told."""

import http.server
import json
import time

import pytest

from tests.support.loopback import answering


class Webhook(http.server.ThreadingHTTPServer):
    """Keeps the path and the JSON of each message.

    Attributes:
        posted: Path and message of each request.
        status: What it answers.
        hang_s: Seconds of silence before each answer.
    """

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


def listening(host="127.0.0.1"):
    """Serves a webhook meanwhile, which answers with 200."""
    return answering(_Handler, Webhook, host, posted=[], status=200, hang_s=0.0)


@pytest.fixture
def webhook(monkeypatch):
    """A webhook that listens."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with listening() as server:
        server.url += "/services/S3CR3T?key=S3CR3T"
        yield server
