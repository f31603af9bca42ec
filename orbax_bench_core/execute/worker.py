"""The process that holds the devices and runs repeats, one task at a time."""

from __future__ import annotations

import argparse
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import pydantic

from orbax_bench_core.execute.devices import simulate_devices
from orbax_bench_core.execute.task import Done, Measured, Ready, Task, Unrecorded, WorkerSetup
from orbax_bench_core.measure.sample import Sample

_GRACE_S = 2.0
_HEARTBEAT_S = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs tasks from standard input, one JSON object a line, until it is closed.

    Args:
        arguments: Command line without the program; None takes the process's own.
    """
    parser = argparse.ArgumentParser(prog="orbax_bench_core.worker", description=main.__doc__)
    parser.add_argument("--setup", required=True, help="a WorkerSetup as JSON")
    parser.add_argument("--events", required=True, type=int, help="file descriptor for events")
    parsed = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    setup = WorkerSetup.model_validate_json(parsed.setup)
    worker = _Worker(setup, events=parsed.events)
    worker.start()
    for task in _tasks():
        worker.perform(task)
    return 0


class _Worker:
    def __init__(self, setup: WorkerSetup, events: int) -> None:
        self._setup = setup
        self._events = events

    def start(self) -> None:
        import jax

        from orbax_bench_core.results.provenance import device_provenance, host_provenance
        from orbax_bench_core.state.cache import StateCache

        setup = self._setup
        jax.config.update("jax_enable_x64", setup.x64)
        if setup.coordinator is not None:
            jax.distributed.initialize(
                setup.coordinator,
                num_processes=setup.num_processes,
                process_id=setup.process_id,
                heartbeat_timeout_seconds=_HEARTBEAT_S,
            )
        simulated = simulate_devices(self._setup.num_devices)
        devices = device_provenance()
        self._provenance = {**host_provenance(), "devices": devices}
        self._states = StateCache()
        self._emit(
            Ready(
                platform=devices["platform"],
                device_count=jax.device_count(),
                fixed=not simulated or devices["platform"] != "cpu",
                provenance=self._provenance,
            )
        )

    def perform(self, task: Task) -> None:
        from orbax_bench_core.execute.repeat import run_repeat
        from orbax_bench_core.results.run_directory import RunDirectory

        record = run_repeat(task, self._setup, self._states, self._provenance, self._measured)
        reason = "" if record.error is None else f"{record.error.type}: {record.error.message}"
        if not (task.warmup and record.status == "skipped"):
            try:
                RunDirectory(self._setup.root).write_record(record)
            except OSError as error:
                self._emit(Unrecorded(reason=f"cannot write the record: {error}"))
                return
        self._emit(Done(status=record.status, reason=reason))

    def _measured(self, samples: Sequence[Sample]) -> None:
        self._emit(Measured(samples=tuple(samples)))

    def _emit(self, event: pydantic.BaseModel) -> None:
        line = event.model_dump_json().encode() + b"\n"
        while line:
            line = line[os.write(self._events, line) :]


def _tasks() -> Iterator[Task]:
    """Yields tasks from standard input until it is closed."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put("")
        # Nobody is left to hand results to, so an operation under way is stopped too.
        time.sleep(_GRACE_S)
        os._exit(1)

    threading.Thread(target=read, name="tasks", daemon=True).start()
    while line := lines.get():
        yield Task.model_validate_json(line)
