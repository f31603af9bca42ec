"""Proxy before an emulated object store: it answers some requests of TensorStore with an error.

    python faulty_storage.py TARGET STATUS EVERY [ONLY [AWAY]]

It prints its port. Of TensorStore's requests every EVERY-th gets STATUS, and is not handed on; with
ONLY just those whose path holds that text are counted. While the file AWAY is there, every request
of whoever it is gets STATUS.
"""

import http.client
import http.server
import itertools
import sys
from pathlib import Path
from typing import Any

TARGET, STATUS, EVERY = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ONLY = sys.argv[4] if len(sys.argv) > 4 else ""
AWAY = Path(sys.argv[5]) if len(sys.argv) > 5 else None
COUNT = itertools.count(1)
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class Proxy(http.server.BaseHTTPRequestHandler):
    """Hands requests on, apart from those that it fails."""

    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_tensorstore = "tensorstore" in (self.headers.get("user-agent") or "")
        if AWAY is not None and AWAY.exists():
            self._answer(STATUS, {}, b"")
            return
        if is_tensorstore and ONLY in self.path and next(COUNT) % EVERY == 0:
            self._answer(STATUS, {}, b"")
            return
        connection = http.client.HTTPConnection(TARGET, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        self._answer(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = _handle

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


if __name__ == "__main__":
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.daemon_threads = True
        print(server.server_address[1], flush=True)
        server.serve_forever()
