"""A training job as it is restarted: steps, saves at an interval, and what it takes to go on."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from orbax_bench_core import interface
from orbax_bench_core.benchmarks.save_restore import SaveRestoreOptions
from orbax_bench_core.benchmarks.support.job_state import make_job_state, wipe
from orbax_bench_core.benchmarks.support.needs import require_arrays_of_all
from orbax_bench_core.benchmarks.support.options import BoundedOptions, await_all_hosts
from orbax_bench_core.inventory import UNFINISHED
from orbax_bench_core.measure import PEERS_NOTICE, STEPS_LOST, TIME, UNCOMMITTED, Metrics

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.interface import Killed


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingJobOptions(BoundedOptions, SaveRestoreOptions):
    """Options of `training_job`, beside those of `save_restore`.

    Attributes:
        save_interval_steps: Save after every so many steps.
        max_to_keep: How many of the latest checkpoints to keep.
        train_steps: Steps of a job that nobody kills; one that is drilled trains until it is
            killed, at a step that is drawn between its second and its third save.
        matrix_size: Side of the square matrices that each device multiplies in a step.
        compilation_cache: JAX's persistent cache of compiled programs: `off`; `warm`, as the life
            before has left it; or `cold`, which a life begins empty.
        tier: Where checkpoints go: `storage`; or `local`, to the local disk of each process with
            every save and to storage with every third, by Orbax's emergency `CheckpointManager`,
            which needs replicas and 2 processes; or `replicator`, to the local disk of each process
            by Orbax's multi-tier `ReplicatorCheckpointManager`, which leaves copies to a service of
            the platform and needs 2 processes.
        wiped: Whether the disk of the last process is empty after a kill, as that of a machine that
            was replaced; for `tier: local`.
        kill: What a drill kills: the `last` process; `all`; or, on several hosts, the `host` of the
            last, with its agent, which somebody has to start again.
        peers_wait_s: Seconds for which a drill leaves the other processes alone, to see when they
            notice by themselves; 0 ends them at once.
    """

    save_interval_steps: interface.Sweepable[int] = 20
    max_to_keep: interface.Sweepable[int] = 2
    train_steps: interface.Sweepable[int] = 50
    matrix_size: interface.Sweepable[int] = 384
    compilation_cache: interface.Sweepable[Literal["off", "warm", "cold"]] = "off"
    tier: interface.Sweepable[Literal["storage", "local", "replicator"]] = "storage"
    wiped: interface.Sweepable[bool] = False
    kill: interface.Sweepable[Literal["last", "all", "host"]] = "last"
    peers_wait_s: interface.Sweepable[float] = 0.0

    least = {"save_interval_steps": 1, "max_to_keep": 1, "train_steps": 1, "matrix_size": 1}

    def is_valid(self) -> bool:
        """A job saves before it ends, and `wiped` needs `tier: local`.

        A replicator's disk is filled again by a service of the platform (multi-tier checkpointing
        of GKE), no part of Orbax.
        """
        saves = self.train_steps >= self.save_interval_steps
        return saves and super().is_valid() and (self.tier == "local" or not self.wiped)


@interface.benchmark_options(TrainingJobOptions)
class TrainingJob(interface.BenchmarksGenerator[TrainingJobOptions]):
    """Measures each `step` and `save_blocking` of a job, then `restore` and `first_step`.

    Under `orbax-bench recovery` the job is killed while it trains, and `restore` and `first_step`
    are those of new processes; then `notice`, `start` and `recovery`, the sum of all four, stand
    beside them, with the steps that were lost and the saves that were left uncommitted. Without a
    drill it goes on in the same process.

    `restore` finds the latest checkpoint and loads it, `first_step` compiles and takes a step. What
    was restored must equal the state of a job that was not killed, after as many steps.
    """

    def test_fn(self, context: interface.TestContext[TrainingJobOptions]) -> interface.TestResult:
        """Trains, or goes on with what a life before has saved."""
        options, drill = context.options, context.drill
        require_arrays_of_all(context, "training_job")
        metrics = Metrics()
        with options.orbax_context():
            if drill is None or drill.killed is None:
                steps = itertools.count(1) if drill else range(1, options.train_steps + 1)
                with _cache(context, begins_empty=True):
                    _train(metrics, context, steps)
            if drill is None or drill.killed is not None:
                with _cache(context, begins_empty=options.compilation_cache == "cold"):
                    _go_on(metrics, context, None if drill is None else drill.killed)
        return interface.TestResult(metrics=metrics)


def _train(
    metrics: Metrics, context: interface.TestContext[TrainingJobOptions], steps: Iterable[int]
) -> None:
    from orbax_bench_core.benchmarks.support.training import Training

    options = context.options
    training = Training(context.pytree, matrix_size=options.matrix_size)
    with make_job_state(context) as state:
        for step in steps:
            with metrics.measure("step", ["time"]):
                training.steps(1)
            # Not within the step: a step that is saved has been reported as done before.
            if step % options.save_interval_steps == 0:
                with metrics.measure("save_blocking", ["time"]):
                    state.save(step, training.state)


def _go_on(
    metrics: Metrics, context: interface.TestContext[TrainingJobOptions], killed: Killed | None
) -> None:
    import jax

    from orbax_bench_core.benchmarks.support.training import Training
    from orbax_bench_core.state import tree_bytes

    options = context.options
    # Managers of local disks clear them up. Storage may be away, which a restore is to meet first.
    left = None if options.tier == "storage" else _uncommitted(context.path)
    if killed is not None and options.wiped:
        wipe(context)
    context.prepare_load("restore", context.path)
    with contextlib.ExitStack() as stack:
        with metrics.measure("restore", options.collectors, num_bytes=tree_bytes(context.pytree)):
            state = stack.enter_context(make_job_state(context))
            step, restored = state.restore()
            jax.block_until_ready(restored)
        with metrics.measure("first_step", options.collectors):
            Training(restored, matrix_size=options.matrix_size).steps(1)
        if killed is not None:
            _record(metrics, killed, step, _uncommitted(context.path) if left is None else left)
        if context.verifier is not None:
            never_killed = Training(context.pytree, matrix_size=options.matrix_size)
            never_killed.steps(step)
            context.verify(restored, never_killed.state, against="saved")


def _record(metrics: Metrics, killed: Killed, step: int, left: int) -> None:
    """Keeps what only those who watched the kill know."""
    seconds = {
        sample.operation: sample.value for sample in metrics.samples if sample.metric == TIME
    }
    parts = (killed.notice_s, killed.start_s, seconds["restore"], seconds["first_step"])
    metrics.record("notice", TIME, killed.notice_s)
    metrics.record("start", TIME, killed.start_s)
    metrics.record("recovery", TIME, sum(parts))
    # A process that was not killed may have gone on after the last report that was read.
    metrics.record("recovery", STEPS_LOST.name, max(0, killed.steps - step))
    metrics.record("recovery", UNCOMMITTED.name, left)
    if killed.peers_s is not None:
        metrics.record("recovery", PEERS_NOTICE.name, killed.peers_s)


def _uncommitted(path: epath.Path) -> int:
    """Returns how many directories of saves that were never committed lie below a path."""
    found = 0
    folders = [path]
    while folders:
        for entry in folders.pop().iterdir():
            if UNFINISHED in entry.name:
                found += 1
            elif entry.is_dir():
                folders.append(entry)
    return found


_CACHE: Final = {
    "jax_compilation_cache_dir": None,
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@contextlib.contextmanager
def _cache(
    context: interface.TestContext[TrainingJobOptions], *, begins_empty: bool
) -> Iterator[None]:
    """Has JAX keep every program that it compiles in a folder of this repeat, or none at all."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    folder = context.path / "compilation_cache"
    on = context.options.compilation_cache != "off"
    if on and begins_empty and jax.process_index() == 0 and folder.exists():
        folder.rmtree()
    await_all_hosts("compilation cache")
    before = {name: getattr(jax.config, name) for name in _CACHE}
    wanted = {**_CACHE, "jax_compilation_cache_dir": str(folder)} if on else before
    try:
        _configure(compilation_cache, wanted)
        yield
    finally:
        _configure(compilation_cache, before)


def _configure(compilation_cache: Any, wanted: Mapping[str, Any]) -> None:
    import jax

    compilation_cache.reset_cache()
    for name, value in wanted.items():
        jax.config.update(name, value)
