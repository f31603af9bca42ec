"""Runs a suite: hands repeats to workers, and turns every failure into a record."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable, Sequence

from orbax_bench_core.config.load import LoadedSuite
from orbax_bench_core.execute.pool import WarmWorker, WorkerPool
from orbax_bench_core.execute.schedule import schedule
from orbax_bench_core.execute.task import Done, Task, Unrecorded
from orbax_bench_core.launch.local import WorkerDied
from orbax_bench_core.results.provenance import host_provenance
from orbax_bench_core.results.record import ErrorInfo, Record, Status
from orbax_bench_core.results.run_directory import RunDirectory, RunInfo
from orbax_bench_core.sweep.point import SweepPoint


class CannotRecord(Exception):
    """A result was measured and there is nowhere to put it: going on would lose more."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a run is made, beside what the suite says.

    Attributes:
        local_directory: Scratch directory on the local disk, for benchmarks that use one.
        remove_repeated_dir: Whether checkpoint data is deleted after each repeat.
        hlo_dump: Whether XLA writes its HLO protos to `hlo_dump/` in the run directory.
        devices: Simulated CPU devices of every worker; None takes what each mesh needs.
    """

    local_directory: str | None = None
    remove_repeated_dir: bool = False
    hlo_dump: bool = False
    devices: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
    """One thing that happened, for whoever watches a run.

    Attributes:
        point: The sweep point.
        repeat: The repeat; None for a warm-up.
        record: The repeat's record once it has ended; None while it begins.
        reused: Whether the record was there before this run.
    """

    point: SweepPoint
    repeat: int | None
    record: Record | None = None
    reused: bool = False


Watcher = Callable[[Progress], None]


def run_points(
    run: RunDirectory,
    info: RunInfo,
    loaded: LoadedSuite,
    points: Sequence[SweepPoint],
    settings: RunSettings,
    watch: Watcher,
) -> None:
    """Runs every repeat of `points` that has no finished record yet.

    Args:
        run: The run directory.
        info: What its `run.json` says.
        loaded: The suite.
        points: What to run: all points of the suite, or one of them in a pipeline step.
        settings: How.
        watch: Told of every repeat.

    Raises:
        CannotRecord: A record could not be written.
    """
    with WorkerPool(
        run,
        suite_file=loaded.source.file,
        devices=settings.devices,
        local_directory=settings.local_directory,
        remove_repeated_dir=settings.remove_repeated_dir,
        hlo_dump=settings.hlo_dump,
    ) as pool:
        runner = _Runner(run, info, pool, watch)
        for point, repeat in schedule(points, info.num_repeats, info.execution):
            runner.finish(point, repeat)


class _Runner:
    def __init__(self, run: RunDirectory, info: RunInfo, pool: WorkerPool, watch: Watcher) -> None:
        self._run = run
        self._info = info
        self._pool = pool
        self._watch = watch

    def finish(self, point: SweepPoint, repeat: int) -> None:
        """Makes sure that one repeat has a finished record, or has failed as often as allowed."""
        record = self._run.read_record(point, repeat)
        if record is not None and record.finished:
            self._watch(Progress(point=point, repeat=repeat, record=record, reused=True))
            return
        for _ in range(self._info.execution.retries + 1):
            attempts = () if record is None else record.as_attempt()
            task = self._task(point, repeat).model_copy(update={"attempts": attempts})
            record = self._try(task)
            if record.finished:
                break
        assert record is not None
        self._watch(Progress(point=point, repeat=repeat, record=record))

    def _task(self, point: SweepPoint, index: int, *, warmup: bool = False) -> Task:
        return Task(
            run_id=self._info.run_id,
            suite=self._info.suite_name,
            point=point,
            repeat=index,
            warmup=warmup,
            verify=self._info.execution.verify == "digest",
        )

    def _try(self, task: Task) -> Record:
        """Runs one task in a worker that is warm for its point; any failure becomes a record."""
        started_at, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        worker: WarmWorker | None = None

        def ended(status: Status, error: ErrorInfo) -> Record:
            record = task.record(
                status=status,
                error=error,
                started_at=started_at,
                duration_s=time.monotonic() - clock,
                samples=() if worker is None else tuple(worker.measured),
                provenance=host_provenance() if worker is None else worker.ready.provenance,
            )
            try:
                self._run.write_record(record)
            except OSError as failure:
                raise CannotRecord(f"cannot write the record: {failure}") from None
            return record

        try:
            worker = self._pool.worker(task.point.num_devices, self._timeout_s)
            self._warm_up(worker, task.point)
            self._watch(Progress(point=task.point, repeat=task.repeat))
            self._perform(worker, task)
            record = self._run.read_record(task.point, task.repeat)
            assert record is not None
        except _WarmUpEnded as warm_up:
            record = ended(warm_up.done.status, warm_up.error())
        except TimeoutError:
            message = f"not done after timeout_s = {self._timeout_s:g} seconds"
            tail = "" if worker is None else worker.tail()
            record = ended("failed", ErrorInfo(type="Timeout", message=message, traceback=tail))
        except WorkerDied as death:
            error = ErrorInfo(type="WorkerDied", message=str(death), traceback=death.tail)
            record = ended("failed", error)
        if worker is not None and not record.finished:
            self._pool.discard(worker)
        return record

    def _warm_up(self, worker: WarmWorker, point: SweepPoint) -> None:
        """Makes the warm-ups of a point in a worker that has not made them."""
        if point.id in worker.warm_points:
            return
        for _ in range(self._info.execution.warmups):
            self._watch(Progress(point=point, repeat=None))
            task = self._task(point, self._run.next_warmup(point), warmup=True)
            done = self._perform(worker, task)
            if done.status != "passed":
                raise _WarmUpEnded(done)
        worker.warm_points.add(point.id)

    def _perform(self, worker: WarmWorker, task: Task) -> Done:
        outcome = worker.perform(task, self._timeout_s)
        if isinstance(outcome, Unrecorded):
            raise CannotRecord(outcome.reason)
        return outcome

    @property
    def _timeout_s(self) -> float:
        return self._info.execution.timeout_s


class _WarmUpEnded(Exception):
    """A warm-up did not pass, so that its repeat will not be run."""

    def __init__(self, done: Done) -> None:
        super().__init__(done.reason)
        self.done = done

    def error(self) -> ErrorInfo:
        kind, _, message = self.done.reason.partition(": ")
        if self.done.status == "failed":
            message = f"in a warm-up: {message}"
        return ErrorInfo(type=kind, message=message)
