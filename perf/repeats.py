"""CPU seconds of a worker: its start, a repeat that does nothing, and a small save and load."""

import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core import authoring
from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.measure import Metrics
from orbax_bench_core.sweep import SweepPoint, load_class, options_class
from orbax_bench_core.worker import Task, Worker, WorkerSetup, importing
from perf.pairing import Figure, milliseconds
from perf.probe import Setting
from perf.process import FROM_SOURCE, ProbeFailed, printed, run

START_TARGET_S: Final = 0.9
EMPTY_TARGET_MS: Final = 4.0
RATIO_TARGET: Final = 1.25

SAVED: Final = "save_restore repeat"
BARE: Final = "bare loop"
EMPTY: Final = "empty repeat"

OPTIONS: Final[Any] = options_class(load_class("save_restore"))
_REPEATS: Final = 20
_TURNS: Final = 3
_WARMUPS: Final = 1
_SHAPE: Final = (512, 512)
"""1 MiB of float32."""


_PROGRAM: Final = "import json; from perf import repeats; print(json.dumps(repeats.take_turns()))"

_ticks: list[float] = []
"""CPU seconds of this process at each `Tick`, and then those of each `Bare`."""


@authoring.benchmark_options(authoring.BenchmarkOptions)
class Empty(authoring.BenchmarksGenerator):
    """A benchmark whose one operation does nothing."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:  # noqa: ARG002
        """Measures nothing, once."""
        metrics = Metrics()
        with metrics.measure("nothing", ["time"]):
            pass
        return authoring.TestResult(metrics=metrics)


@authoring.benchmark_options(authoring.BenchmarkOptions)
class Tick(Empty):
    """An empty repeat that notes how much CPU this process has taken."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        """Notes it and measures nothing."""
        _ticks.append(time.process_time())
        return super().test_fn(context)


@authoring.benchmark_options(authoring.BenchmarkOptions)
class Bare(Empty):
    """Saves and loads as an author would without any framework, in the process of a worker."""

    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        """Notes the CPU that some saves and loads take; what they leave is on disk till the end."""
        import jax
        from orbax.checkpoint import v1 as ocp

        tree = context.pytree
        target = target_of(tree)
        with OPTIONS().orbax_context():
            began = time.process_time()
            for index in range(_REPEATS):
                path = context.path / str(index)
                ocp.save_async(path, tree).result()
                jax.block_until_ready(ocp.load(path, target))
            _ticks.append(time.process_time() - began)
        return super().test_fn(context)


def figures(setting: Setting) -> list[Figure]:
    """Starts workers, and has a process run repeats and the bare loop in turn."""
    started = setting.pairs("worker start", _start)
    taken = setting.pairs("repeats", in_turn)
    saved = "save and load of 1 MiB, repeat over bare loop: CPU"
    return [
        started.figure("start of a worker: CPU", "s", float, START_TARGET_S, limits="value"),
        taken.figure(
            "empty repeat: CPU", "ms", milliseconds(EMPTY), EMPTY_TARGET_MS, limits="value"
        ),
        taken.figure(saved, "ms", milliseconds(SAVED), RATIO_TARGET, beside=milliseconds(BARE)),
    ]


def target_of(tree: Any) -> Any:
    """Returns what a load is told of a tree: shapes, dtypes and shardings."""
    import jax

    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), tree
    )


def _start() -> float:
    """Starts a worker that is given nothing to do, and returns its CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        setup = WorkerSetup(root=f"{folder}/run", x64=False, num_devices=1)
        command = [sys.executable, "-m", "orbax_bench_core.worker", "--setup"]
        return run([*command, setup.model_dump_json()], environment=FROM_SOURCE).cpu_seconds


def in_turn() -> dict[str, float]:
    """Has another process take turns; see `take_turns`."""
    taken: dict[str, float] = printed([sys.executable, "-c", _PROGRAM])
    return taken


def take_turns() -> dict[str, float]:
    """Has a worker in this process take turns: repeats of each kind, and the bare loop.

    Returns:
        CPU seconds of one repeat, or of one turn of the loop, all threads of the process included.
    """
    empty, tick, bare = (point_of(f"perf.repeats.{name}") for name in ("Empty", "Tick", "Bare"))
    points = [tick, *[saving_point()] * _REPEATS, tick, bare] * (_WARMUPS + _TURNS)
    with tempfile.TemporaryDirectory() as folder:
        perform([*points, tick, *[empty] * _REPEATS, tick], Path(folder))
    began, ended = _ticks[-2:]
    # From one tick to the next there is the rest of a tick's repeat and the begin of another's.
    one = (ended - began) / (_REPEATS + 1)
    kept = _ticks[3 * _WARMUPS : -2]
    whole = [end - begin - one for begin, end in zip(kept[::3], kept[1::3], strict=True)]
    return {
        EMPTY: one,
        SAVED: statistics.median(whole) / _REPEATS,
        BARE: statistics.median(kept[2::3]) / _REPEATS,
    }


def point_of(
    benchmark: str, options: dict[str, Any] | None = None, *, shape: Sequence[int] = _SHAPE
) -> SweepPoint:
    """Returns a sweep point of one array of float32 on one device."""
    checkpoint = {"spec": {"w": {"dtype": "float32", "shape": list(shape)}}}
    return SweepPoint(
        benchmark=benchmark,
        options=options or {},
        checkpoint=CheckpointConfig.model_validate(checkpoint),
        mesh=None,
    )


def saving_point(*, shape: Sequence[int] = _SHAPE) -> SweepPoint:
    """Returns a sweep point that saves and loads one array of float32, with all options default."""
    options = dataclasses.asdict(OPTIONS())
    return point_of("save_restore", options, shape=shape)


def perform(points: Sequence[SweepPoint], folder: Path) -> None:
    """Has a worker, which is this process, run one repeat of each point.

    Raises:
        ProbeFailed: A repeat failed.
    """
    tasks = [
        Task(
            run_id="run",
            suite="suite",
            config_hash="hash",
            point=point,
            repeat=repeat,
            warmup=False,
            verify=True,
        )
        for repeat, point in enumerate(points)
    ]
    root = folder / "run"
    root.mkdir()
    (root / "run.json").touch()  # a worker measures into no directory without one
    worker = Worker(WorkerSetup(root=str(root), x64=False, num_devices=1))
    with importing("jax"):
        worker.start()
    if any(worker.perform(task) == "failed" for task in tasks):
        raise ProbeFailed("a repeat failed")
