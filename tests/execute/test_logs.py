"""Logs of workers: nothing secret stays in them, and little of a long one is read."""

import queue
import sys
import time

from orbax_bench_core.execute.hosts import local
from orbax_bench_core.execute.hosts.local import LocalWorker

EARLIER = b"an earlier worker's\n"
URL = "https://u:planted@h/x?X-Goog-Signature=planted"


def test_the_log_of_a_worker_that_ended_has_no_credentials(tmp_path):
    log = tmp_path / "w.log"
    log.write_bytes(EARLIER)
    said = f"print('403 for {URL}', flush=True); open({str(tmp_path / 'x')!r}, 'w')"
    worker = LocalWorker(
        [sys.executable, "-S", "-c", said],
        environment={},
        log_file=log,
        inbox=queue.SimpleQueue(),
        index=0,
    )
    while not (tmp_path / "x").exists():
        time.sleep(0.01)
    assert worker.tail() == "403 for https://***@h/x?X-Goog-Signature=***"
    worker.stop()
    assert log.read_bytes() == EARLIER + b"403 for https://***@h/x?X-Goog-Signature=***\n"


def test_of_a_long_log_the_end_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_TAIL_BYTES", 100)
    log = tmp_path / "w.log"
    log.write_bytes(b"")
    worker = LocalWorker(
        ["/bin/true"], environment={}, log_file=log, inbox=queue.SimpleQueue(), index=0
    )
    with log.open("ab") as file:
        file.write(b"x" * 10_000 + b"\nlast\n")
    assert worker.tail(1) == "last"
    assert len(worker.tail()) <= 100
    worker.stop()
