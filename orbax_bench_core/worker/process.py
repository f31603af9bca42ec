"""Worker process: it holds the devices and runs repeats, one task at a time."""

import argparse
import contextlib
import faulthandler
import logging
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NoReturn

import pydantic

from orbax_bench_core.leases import LeaseLost
from orbax_bench_core.measure import Sample
from orbax_bench_core.records import AlreadyRecorded, Record, RunDirectory, RunDirectoryGone, Status
from orbax_bench_core.sweep import host_memory_of
from orbax_bench_core.worker import protocol
from orbax_bench_core.worker.events import Done, Measured, Ready, Unrecorded
from orbax_bench_core.worker.runtime import collect_for_the_last_time, importing, simulate_devices

_log = logging.getLogger(__name__)

_GRACE_S = 2.0
"""Seconds for which a worker whose orchestrator is gone may still end what it does."""
_HEARTBEAT_S = 60
"""Seconds of silence after which JAX ends the others. The orchestrator looks at the signs of all
workers, and is to name the one that failed long before that."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs tasks, one JSON object a line of standard input, and leaves their records."""
    faulthandler.register(protocol.STACKS_SIGNAL)
    parser = argparse.ArgumentParser(prog="orbax_bench_core.worker", description=main.__doc__)
    parser.add_argument("--setup", required=True, help="a WorkerSetup as JSON")
    parser.add_argument("--events", type=int, help="file descriptor for events; default: none")
    parsed = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    setup = protocol.WorkerSetup.model_validate_json(parsed.setup)
    if setup.parent is not None and not die_with_parent(setup.parent):
        return EXIT_ABANDONED
    worker = Worker(setup, events=parsed.events)
    with importing("jax"):
        worker.start()
    ended = [worker.perform(task) for task in worker.tasks()]
    collect_for_the_last_time()
    return int("failed" in ended)


class Worker:
    """This process: its devices, and the tasks that it is handed."""

    def __init__(self, setup: protocol.WorkerSetup, events: int | None = None) -> None:
        self._setup = setup
        self._events = events
        self._abandoned = False
        self._run = RunDirectory(setup.root)

    def start(self) -> None:
        """Joins the other processes, and takes the devices."""
        import jax

        from orbax_bench_core.provenance import device_provenance, host_provenance, worker_id
        from orbax_bench_core.state import StateCache, initialize_if_used, join_processes

        setup = self._setup
        jax.config.update("jax_enable_x64", setup.x64)
        on_pathways = initialize_if_used()
        if setup.coordinator is not None and not on_pathways:
            join_processes(
                setup.coordinator,
                num_processes=setup.num_processes,
                process_id=setup.process_id,
                heartbeat_s=_HEARTBEAT_S,
            )
        simulated = simulate_devices(self._setup.num_devices)
        devices = device_provenance()
        self._provenance = {**host_provenance(), "devices": devices}
        self._states = StateCache()
        self._id = worker_id()
        self._emit(
            Ready(
                platform=devices["platform"],
                device_count=jax.device_count(),
                fixed=not simulated or devices["platform"] != "cpu",
                provenance=self._provenance,
                worker=self._id,
                processes=1 if on_pathways else jax.process_count(),
                host_memory=host_memory_of(os.environ),
                x64=bool(jax.config.read("jax_enable_x64")),
                environment=setup.environment,
                interpreter=sys.executable,
                interpreter_asked=sys.executable
                if is_this_python(setup.interpreter)
                else setup.interpreter,
            )
        )

    def perform(self, task: protocol.Task) -> Status:
        """Runs one repeat, writes its record, and returns how it ended.

        A worker whose lease is lost, or whose orchestrator is gone, ends here and leaves no record.
        Where the record cannot be written, the orchestrator is told so, and ends the run.
        """
        from orbax_bench_core.worker.repeat import run_repeat

        try:
            self._run.check_there()
            record = run_repeat(
                task, self._setup, self._states, self._provenance, self._id, self._emit_measured
            )
            # Again: writing a record into a run directory that is gone by now would create it.
            self._run.check_there()
        except RunDirectoryGone as gone:
            self._emit(Unrecorded(reason=str(gone)))
            return "failed"
        _log.info("%s", metric_report(record))
        # A point that cannot run here is recorded once, by the orchestrator, as its repeat.
        if not (task.warmup and record.status == "skipped"):
            # Its orchestrator is gone: the same command, run again, measures this repeat again.
            if self._abandoned and self._setup.parent is not None:
                leave()
            try:
                record = self._run.write_record(record, fence=task.fence, replaces=task.replaces)
            except LeaseLost:
                leave()
            except AlreadyRecorded as final:
                _log.warning("this try is not kept: %s", final)
            except OSError as error:
                said = f"cannot write the record: {error}"
                self._emit(Unrecorded(reason=said, number=error.errno))
                return "failed"
        self._emit(Done(status=record.status, error=record.error))
        return record.status

    def tasks(self) -> Iterator[protocol.Task]:
        """Yields tasks from standard input until it is closed."""
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()

        def read() -> None:
            for line in sys.stdin:
                lines.put(line)
            self._abandoned = True
            lines.put("")
            # Nobody is left to hand results to, so an operation under way is stopped too.
            time.sleep(_GRACE_S)
            leave()

        threading.Thread(target=read, name="tasks", daemon=True).start()
        while line := lines.get():
            yield protocol.Task.model_validate_json(line)

    def _emit_measured(self, samples: Sequence[Sample]) -> None:
        self._emit(Measured(samples=tuple(samples)))

    def _emit(self, event: pydantic.BaseModel) -> None:
        if self._events is None:
            return
        line = event.model_dump_json().encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._events, line) :]
        except BrokenPipeError:
            leave()


EXIT_ABANDONED: Final = 1

_SET_PARENT_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""


def die_with_parent(parent: int) -> bool:
    """Has the kernel kill this process when the one that started it ends, however it ends.

    Args:
        parent: Process id of the one that started this.

    Returns:
        Whether it still lives: it may have ended before the kernel was asked.
    """
    # The signal is SIGKILL, for a process that is stopped sees no other. It is sent when the thread
    # that started this process ends, which for an orchestrator is the one that measures.
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # other kernels have no such call
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    return os.getppid() == parent


def is_this_python(path: str) -> bool:
    """Returns whether a path is that of the Python which runs this, however it is written.

    Folders are compared as well: a virtual environment links to the Python that it was made by.
    """
    try:
        given, own = Path(path), Path(sys.executable)
        return given.samefile(own) and given.parent.samefile(own.parent)
    except OSError:
        return False


def leave() -> NoReturn:
    """Ends this process at once and without a word: nobody is left who could use a result."""
    os._exit(EXIT_ABANDONED)


def metric_report(record: Record) -> str:
    """Returns every value that one process measured in a repeat, one per line."""
    which = f"{'warm-up' if record.warmup else 'repeat'} {record.repeat}"
    arm = "" if record.arm is None else f" {record.arm}"
    title = (
        f"metric report of process {record.host} of {record.num_hosts}: "
        f"{record.point_name}{arm} {which}: {record.status}"
    )
    if record.error is not None:
        title += f": {record.error.said}"
    keys = [sample.key for sample in record.samples]
    width = max(map(len, keys), default=0)
    values = [
        f"  {key:<{width}}  {sample.value:.6g} {sample.unit}".rstrip()
        for key, sample in zip(keys, record.samples, strict=True)
    ]
    return "\n".join([title, *(values or ["  nothing was measured"])])
