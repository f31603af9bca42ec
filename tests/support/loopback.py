"""Servers of HTTP on this machine."""

import contextlib
import http.server
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def answering(
    handler: type[http.server.BaseHTTPRequestHandler],
    kind: type[http.server.ThreadingHTTPServer] = http.server.ThreadingHTTPServer,
    host: str = "127.0.0.1",
    **attributes: object,
) -> Iterator[http.server.ThreadingHTTPServer]:
    """Serves requests meanwhile, by a handler whose server has these attributes and a `url`."""
    with kind((host, 0), handler) as server:
        vars(server).update(attributes, url=f"http://127.0.0.1:{server.server_port}")
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
