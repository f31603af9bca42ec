"""A worker process on this machine."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_KEEP_HEAP = (
    "glibc.malloc.mmap_threshold=4294967295:"
    "glibc.malloc.trim_threshold=9999999999:"
    "glibc.malloc.arena_max=1"
)
"""Keeps freed memory in the worker's heap. Virtual machines that back memory lazily hand out fresh
pages at under 1 GB/s, which would otherwise dominate every load."""

_STOP_S = 5.0
_TAIL_LINES = 15


class WorkerDied(Exception):
    """The worker process has ended while something was expected of it.

    Attributes:
        tail: The last lines that it printed.
    """

    def __init__(self, message: str, tail: str) -> None:
        super().__init__(message)
        self.tail = tail


class LocalWorker:
    """One `python -m orbax_bench_core.worker`, with lines going in and lines coming out."""

    def __init__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], log_file: Path
    ) -> None:
        """Starts the process.

        Args:
            arguments: Command line after `python -m orbax_bench_core.worker`.
            environment: Its environment; what this class needs is added.
            log_file: Where everything that it prints is appended.
        """
        self._log_file = log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        events_in, events_out = os.pipe()
        with log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *("-m", "orbax_bench_core.worker"),
                    *("--events", str(events_out)),
                    *arguments,
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[events_out],
                env={"GLIBC_TUNABLES": _KEEP_HEAP, **environment},
                # Ctrl-C is for the orchestrator, which then stops its workers in order.
                start_new_session=True,
            )
        os.close(events_out)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(events_in,), daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    def send(self, line: str) -> None:
        """Hands one line to the worker.

        Raises:
            WorkerDied: It has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise WorkerDied(self._cause_of_death(), self.tail()) from None

    def receive(self, deadline: float) -> bytes:
        """Returns the worker's next line.

        Args:
            deadline: Until when to wait, on `time.monotonic`.

        Raises:
            TimeoutError: Nothing came in time.
            WorkerDied: It has ended.
        """
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError from None
        if not line:
            raise WorkerDied(self._cause_of_death(), self.tail())
        return line

    def tail(self) -> str:
        """Returns the last lines that the worker printed."""
        with self._log_file.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])

    def dismiss(self) -> None:
        """Lets the worker end once it is idle, without waiting for it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        """Ends the worker and all that it started, and waits until they are gone."""
        self.dismiss()
        for signal_ in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
                break

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as events:
            for line in events:
                self._lines.put(line)
        self._lines.put(b"")

    def _cause_of_death(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return f"the worker ended with exit code {code}"
        name = signal.Signals(-code).name
        hint = "; the kernel may have killed it for want of memory" if name == "SIGKILL" else ""
        return f"the worker was killed by {name}{hint}"
