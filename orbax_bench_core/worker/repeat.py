"""Repeat inside a worker: context, benchmark, verification and record."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pydantic

from orbax_bench_core import measure, records, state
from orbax_bench_core.files import AnyPath, place, refuse_links, remove_tree
from orbax_bench_core.interface import (
    Against,
    BenchmarkOptions,
    BenchmarksGenerator,
    TestContext,
    TestResult,
    UnmetNeed,
)
from orbax_bench_core.inventory import Inventory, take_inventory
from orbax_bench_core.provenance import loaded_code
from orbax_bench_core.sweep import BUILTINS, load_class, options_class, source_file
from orbax_bench_core.worker.effects import COLOCATED_EFFECT, EffectListener, require_effects
from orbax_bench_core.worker.page_cache import PageCacheConditioner
from orbax_bench_core.worker.protocol import Task, WorkerSetup
from orbax_bench_core.worker.runtime import collect_garbage, importing


def run_repeat(
    task: Task,
    setup: WorkerSetup,
    states: state.StateCache,
    provenance: dict[str, Any],
    worker: str,
    measured: Callable[[Sequence[measure.Sample]], None],
) -> records.Record:
    """Runs one repeat and returns its record, whatever happens inside the benchmark.

    Args:
        task: The attempt.
        setup: What this worker was told when it started.
        states: Keeps the states of points, so that each is made once.
        provenance: What runs, and on what.
        worker: Id of this process.
        measured: Takes the samples of each block as it ends.
    """
    run = records.RunDirectory(setup.root)
    repeat = _Repeat(task, setup, run, states, measured)
    started_at, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    status: records.Status = "passed"
    error: records.ErrorInfo | None = None
    try:
        repeat.execute()
    except KeyboardInterrupt:
        raise  # this process is told to end
    except BaseException as failure:  # noqa: BLE001 - a failure is data, also a GeneratorExit
        status, error = _describe_end(failure)
    finally:
        repeat.clean_up()
    record = functools.partial(
        task.record,
        started_at=started_at,
        duration_s=time.monotonic() - clock,
        state=repeat.state,
        inventory=repeat.inventory,
        effects=repeat.effects,
        provenance={**task.provenance(provenance, setup.root, repeat.state), "code": repeat.code},
        worker=worker,
    )
    try:
        return record(status=status, error=error, samples=tuple(repeat.samples), notes=repeat.notes)
    except pydantic.ValidationError as wrong:  # by what the benchmark has measured
        return record(status="failed", error=error or _describe(wrong))


def _describe_end(failure: BaseException) -> tuple[records.Status, records.ErrorInfo]:
    """Returns the status of a repeat that ended by an exception, and the error of its record."""
    if isinstance(failure, (state.MeshDoesNotFit, state.NotOnPathways)):
        return "skipped", records.ErrorInfo(type=type(failure).__name__, message=str(failure))
    if isinstance(failure, UnmetNeed):
        return "failed", records.ErrorInfo.unmet_need(_first_line(failure))
    return "failed", _describe(failure)


class NotKilled(Exception):
    """Training that a drill was to kill has ended by itself."""


class NothingMeasured(Exception):
    """A benchmark came to its end without a measured block."""


_RSS_LEFT_OUT: Final = (
    f"{measure.RSS_GROWTH.name}: not measurable under host_memory: reused, where the allocator "
    "keeps what is freed; 7_memory/host_peak_rss_mb holds, or set host_memory: fresh"
)


class _Repeat:
    """The steps of one repeat, and what they have found so far."""

    def __init__(
        self,
        task: Task,
        setup: WorkerSetup,
        run: records.RunDirectory,
        states: state.StateCache,
        measured: Callable[[Sequence[measure.Sample]], None],
    ) -> None:
        self._task = task
        self._setup = setup
        self._run = run
        self._states = states
        self._measured = measured
        self._path = run.data_path(task.point, task.repeat, warmup=task.warmup, arm=task.arm)
        self.samples: list[measure.Sample] = []
        self.notes: dict[str, list[str]] = {}
        self._left_out: dict[str, None] = {}
        self.state: records.State | None = None
        self.inventory: Inventory | None = None
        self.code = task.code
        self.effects: tuple[records.OptionEffect, ...] = ()

    def execute(self) -> None:
        """Prepares the benchmark, runs it, and keeps what it has measured and left."""
        point = self._task.measured
        benchmark = self._load_benchmark()
        context = self._make_context(options_class(benchmark))
        traces, listener = _Traces(self._task, self._run), EffectListener(point.options)
        context.tracer = traces.claim
        os.sync()  # what is left unwritten, of another repeat too, is not this one's to wait for
        collect_garbage()
        with self._watching(), measure.tracing(traces.directory), listener.listening():
            result = benchmark().test_fn(context)
        self._check_result(result)
        self.notes = {**result.metrics.notes}
        for block in self._left_out:
            self.notes[block] = [*self.notes.get(block, []), _RSS_LEFT_OUT]
        if self._task.host == 0:
            self.inventory = take_inventory(result.inventory_path or self._path)
            self.effects += listener.effects(point, self._path, self.samples, traces.stem)
            require_effects(self.effects, point.given)

    def _load_benchmark(self) -> type[BenchmarksGenerator]:
        point = self._task.measured
        with importing(BUILTINS.get(point.benchmark, point.benchmark).rpartition(".")[0]):
            benchmark = load_class(point.benchmark)
        self.code = loaded_code(self.code, source_file(benchmark))
        if point.checkpoint.load_with_colocated_python:
            state.require_pathways("load_with_colocated_python: true")
            self.effects = (COLOCATED_EFFECT,)
        return benchmark

    def _make_context(self, options: type[BenchmarkOptions]) -> TestContext:
        """Makes the state and an empty folder, and waits until every host has them."""
        task, point = self._task, self._task.measured
        mesh = None if point.mesh is None else state.build_mesh(point.mesh)
        made = self._states.get(point.checkpoint, point.mesh, mesh)
        self.state = records.State(num_bytes=made.num_bytes, digest=made.digest)
        resumes = self._task.drill is not None and self._task.drill.killed is not None
        if task.host == 0 and not resumes:
            self._run.remove_data(task.point, task.repeat, warmup=task.warmup, arm=task.arm)
            self._path.mkdir(parents=True)
        if self._trains_until_killed:
            # What a drill that was stopped has left is no checkpoint of this one.
            with contextlib.suppress(FileNotFoundError):  # processes of one host share it
                self._local_path(remove_tree)
        _await_all_hosts(self._task)
        return TestContext(
            pytree=made.tree,
            path=self._path,
            options=options.from_dict(point.given_options),
            mesh=mesh,
            repeat_index=None if self._task.warmup else self._task.repeat,
            local_path=self._local_path(refuse_links),
            output_dir=self._run.root,
            name=self._task.point.directory,
            conditioner=PageCacheConditioner(
                point.conditions, self._observe, lambda: _await_all_hosts(self._task)
            ),
            verifier=self._verify if self._task.verify else None,
            checkpoint=point.checkpoint,
            on_verified=self._note_verified,
            drill=self._task.drill,
        )

    @property
    def _trains_until_killed(self) -> bool:
        return self._task.drill is not None and self._task.drill.killed is None

    def _check_result(self, result: object) -> None:
        """Checks that a benchmark came to its end as it should, and has measured something."""
        benchmark = self._task.measured.benchmark
        if self._trains_until_killed:
            raise NotKilled(f"{benchmark} came to its end before it was killed")
        if not isinstance(result, TestResult):
            raise TypeError(
                f"{benchmark}.test_fn returned {result!r}; return TestResult(metrics=metrics)"
            )
        # Of several processes one may measure for all, so that none of them alone can tell. How
        # much of a checkpoint is in the page cache, the harness finds out by itself.
        if (
            self._task.num_hosts == 1
            and not self._left_out
            and all(sample.metric == measure.RESIDENT_SHARE.name for sample in self.samples)
        ):
            raise NothingMeasured(
                f"{benchmark}.test_fn measured nothing: wrap the operation in "
                '`with metrics.measure("save"):`, as docs/authoring.md shows'
            )

    def clean_up(self) -> None:
        """Removes this host's own scratch; what the hosts share goes when all are done with it."""
        if self._trains_until_killed:
            return  # the life that follows goes on with it
        if self._task.warmup or not self._setup.keep_data:
            with contextlib.suppress(OSError):  # a measured repeat is not lost for its scratch
                self._local_path(remove_tree)

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Keeps the samples of all blocks, which also read what is not the suite's to choose."""
        # Throttled and failed requests are counted wherever something lies in an object store; a
        # soak has the state of the process as well.
        remote = "://" in self._setup.root or bool(self._task.measured.stores)
        keys = ["store_answers"] * remote + ["process_state"] * self._setup.soak
        with contextlib.ExitStack() as stack:
            stack.enter_context(measure.observing(self._observe))
            if keys:
                stack.enter_context(measure.also_collecting(*keys))
            yield

    def _observe(self, samples: Sequence[measure.Sample]) -> None:
        if self._task.measured.conditions.host_memory == "reused":
            # An allocator that keeps what is freed makes growth look like nothing: no sample is
            # better than one of 0, and a note says why there is none.
            own = [sample for sample in samples if sample.metric != measure.RSS_GROWTH.name]
            if len(own) < len(samples):
                self._left_out[measure.block_name(samples[0].operation, samples[0].occurrence)] = (
                    None
                )
            samples = own
        self.samples += samples
        self._measured(samples)

    def _verify(self, restored: Any, expected: Any) -> None:
        assert self.state is not None
        state.check_digest(
            restored, state.Digest(self.state.digest) if expected is None else expected
        )

    def _note_verified(self, against: Against) -> None:
        assert self.state is not None
        before = () if self.state.verified == "none" else (self.state.verified,)
        self.state = self.state.model_copy(update={"verified": records.weakest([*before, against])})

    def _local_path(self, prepare: Callable[[AnyPath, str], object]) -> AnyPath | None:
        """Returns the folder that benchmarks write into, removed or without links on its way."""
        root = self._setup.local_directory
        if root is None:
            return None
        path = place(root) / self._task.point.directory / self._path.name
        prepare(path, root)
        return path


@dataclasses.dataclass
class _Traces:
    """Decides which operations are traced, and by whom: the framework, or the author by hand."""

    task: Task
    run: records.RunDirectory
    claimed: set[str] = dataclasses.field(default_factory=set)

    @property
    def stem(self) -> AnyPath:
        """How the folders of the traces of this point or arm begin."""
        series = "-".join(filter(None, [self.task.point.directory, self.task.arm]))
        return self.run.root / "tensorboard" / series

    def directory(self, operation: str) -> str | None:
        if operation in self.claimed:
            self.claimed.discard(operation)  # the author has this block, and no later one
            return None
        path = self._path(operation)
        return None if path is None else str(path)

    def claim(self, operation: str) -> AnyPath | None:
        self.claimed.add(operation)
        return self._path(operation)

    def _path(self, operation: str) -> AnyPath | None:
        task, root = self.task, self.run.root
        if not task.traced:
            return None
        folder = self.stem.with_name(f"{self.stem.name}__{operation}")
        # The profiler names a trace by the second, and repeats may begin within one.
        if task.measured.options.get("trace_every_repeat"):
            folder = folder / f"warmup_{task.repeat}"
        refuse_links(folder, root)
        return folder


def _describe(failure: BaseException) -> records.ErrorInfo:
    return records.ErrorInfo(
        type=type(failure).__name__,
        message=_first_line(failure),
        traceback="".join(traceback.format_exception(failure)),
    )


def _first_line(failure: BaseException) -> str:
    try:
        text = str(failure)
    except Exception as error:  # noqa: BLE001 - the exception is the author's
        text = f"its text cannot be told: __str__ raised {type(error).__name__}"
    return (text.strip() or type(failure).__name__).splitlines()[0]


def _await_all_hosts(task: Task) -> None:
    """Has all hosts begin together; the orchestrator notices a host that never comes."""
    if task.num_hosts > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices(f"{task.point.id}:{task.repeat}:{task.warmup}")
