"""The workers of one run."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from orbax_bench_core.execute.task import (
    EVENT,
    Done,
    Measured,
    Ready,
    Task,
    Unrecorded,
    WorkerSetup,
)
from orbax_bench_core.launch.local import LocalWorker
from orbax_bench_core.sweep.isolate import benchmark_environment

if TYPE_CHECKING:
    from orbax_bench_core.measure.sample import Sample
    from orbax_bench_core.results.run_directory import RunDirectory

_MAX_LIVE_WORKERS = 4


class WarmWorker:
    """A worker with its devices up, and what it has warmed up for.

    Attributes:
        ready: What it said when it was ready.
        warm_points: Ids of the points whose warm-ups it has made.
        measured: Samples of the task under way, in the order in which operations ended.
    """

    def __init__(self, process: LocalWorker, deadline: float) -> None:
        self._process = process
        ready = self._next(deadline)
        assert isinstance(ready, Ready)
        self.ready = ready
        self.warm_points: set[str] = set()
        self.measured: list[Sample] = []

    def perform(self, task: Task, timeout_s: float) -> Done | Unrecorded:
        """Has one task done.

        Raises:
            TimeoutError: It took longer than `timeout_s`.
            WorkerDied: The worker ended on the way.
        """
        self.measured = []
        deadline = time.monotonic() + timeout_s
        self._process.send(task.model_dump_json())
        while True:
            event = self._next(deadline)
            if isinstance(event, Measured):
                self.measured += event.samples
            elif isinstance(event, Done | Unrecorded):
                return event

    def tail(self) -> str:
        """Returns the last lines that the worker printed."""
        return self._process.tail()

    def dismiss(self) -> None:
        """Lets the worker end on its own."""
        self._process.dismiss()

    def stop(self) -> None:
        """Ends the worker."""
        self._process.stop()

    def _next(self, deadline: float) -> Ready | Measured | Done | Unrecorded:
        return EVENT.validate_json(self._process.receive(deadline))


class WorkerPool:
    """Keeps one warm worker per number of devices; accelerators have one worker for all.

    A pool is a context manager; leaving it ends every worker.
    """

    def __init__(
        self,
        run: RunDirectory,
        *,
        suite_file: str,
        devices: int | None,
        local_directory: str | None,
        remove_repeated_dir: bool,
        hlo_dump: bool,
    ) -> None:
        """Describes the workers; none is started yet.

        Args:
            run: The run directory.
            suite_file: The suite's file; benchmark classes may lie beside it.
            devices: Simulated CPU devices of every worker; None takes what each mesh needs.
            local_directory: Scratch directory on the local disk.
            remove_repeated_dir: Whether checkpoint data goes after each repeat.
            hlo_dump: Whether XLA writes its HLO protos to `hlo_dump/`.
        """
        self._run = run
        self._environment = _environment(run, suite_file, devices, hlo_dump)
        self._local_directory = local_directory
        self._remove_repeated_dir = remove_repeated_dir
        self._logs = _log_folder(run)
        self._workers: dict[int, WarmWorker] = {}
        self._shared = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.dismiss()
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()

    def worker(self, num_devices: int | None, timeout_s: float) -> WarmWorker:
        """Returns a warm worker, starting one when there is none.

        Args:
            num_devices: Devices that it should have; None when any number will do.
            timeout_s: Seconds that it may take to be ready.

        Raises:
            TimeoutError: It was not ready in time.
            WorkerDied: It ended before it was ready.
        """
        key = 1 if num_devices is None else num_devices
        if self._shared:
            key = next(iter(self._workers), key)
        if key in self._workers:
            self._workers[key] = worker = self._workers.pop(key)
            return worker
        while len(self._workers) >= _MAX_LIVE_WORKERS:
            self._workers.pop(next(iter(self._workers))).stop()
        self._workers[key] = worker = self._start(key, timeout_s)
        # With real devices, or a number of them set from outside, every worker would be alike.
        self._shared = worker.ready.fixed
        return worker

    def discard(self, worker: WarmWorker) -> None:
        """Ends a worker in which something failed: what it left running would be measured."""
        self._workers = {key: kept for key, kept in self._workers.items() if kept is not worker}
        worker.stop()

    def _start(self, num_devices: int, timeout_s: float) -> WarmWorker:
        setup = WorkerSetup(
            root=str(self._run.root),
            num_devices=num_devices,
            local_directory=self._local_directory,
            remove_repeated_dir=self._remove_repeated_dir,
        )
        process = LocalWorker(
            ["--setup", setup.model_dump_json()],
            environment=self._environment,
            log_file=self._logs / f"worker_{num_devices}_devices.log",
        )
        try:
            return WarmWorker(process, time.monotonic() + timeout_s)
        except BaseException:
            process.stop()
            raise


def _environment(
    run: RunDirectory, suite_file: str, devices: int | None, hlo_dump: bool
) -> dict[str, str]:
    environment = benchmark_environment(suite_file)
    if devices is not None:
        environment["JAX_NUM_CPU_DEVICES"] = str(devices)
    if hlo_dump:
        # XLA reads its flags once, before the first device is used.
        flags = f"--xla_dump_to={run.root / 'hlo_dump'} --xla_dump_hlo_as_proto"
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flags}".strip()
    return environment


def _log_folder(run: RunDirectory) -> Path:
    if "://" in str(run.root):
        return Path(tempfile.mkdtemp(prefix="orbax-bench-logs-"))
    return Path(os.fspath(run.logs))
