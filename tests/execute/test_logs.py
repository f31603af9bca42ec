"""Logs of workers: nothing secret stays in them, and little of a long one is read."""

import queue
import sys
import time

from orbax_bench_core.execute.hosts import local
from orbax_bench_core.execute.hosts.local import LocalWorker

EARLIER = b"an earlier worker's\n"
ORDINARY = "an ordinary line of a log, of which there are many, with a key\n"
SAID = f"""403 for https://u:planted@h/x?X-Goog-Signature=planted
AWS_SECRET_ACCESS_KEY=planted
{{'Authorization': 'Bearer planted'}}
{ORDINARY * 20_000}
-----BEGIN OPENSSH PRIVATE KEY-----
{"planted" * 10 + chr(10)}{ORDINARY.replace(" ordinary", "")}{"planted" * 10}
-----END OPENSSH PRIVATE KEY-----
password:
  planted
{ORDINARY * 20_001}"""
"""More than is looked at together."""


def test_the_log_of_a_worker_that_ended_has_no_credentials(tmp_path):
    log = tmp_path / "w.log"
    log.write_bytes(EARLIER)
    (tmp_path / "said").write_text(SAID)
    code = f"print(open({str(tmp_path / 'said')!r}).read()); open({str(tmp_path / 'x')!r}, 'w')"
    worker = LocalWorker(
        [sys.executable, "-u", "-S", "-c", code],
        environment={},
        log_file=log,
        inbox=queue.SimpleQueue(),
        index=0,
    )
    while not (tmp_path / "x").exists():
        time.sleep(0.01)
    assert "planted" not in worker.tail(100_000)
    worker.stop()
    kept = log.read_bytes()
    assert kept.startswith(EARLIER + b"403 for https://***@h/x?X-Goog-Signature=***\n")
    assert b"planted" not in kept
    assert kept.count(b"an ordinary line") == 40_001


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
