"""Run of a benchmark in this process, step by step as a worker runs it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orbax_bench_core.config import CheckpointConfig, LoadedSuite, MeshConfig, expanded, parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.interface import BenchmarkOptions, BenchmarksGenerator, TestContext, Verifier
from orbax_bench_core.measure import Sample
from orbax_bench_core.provenance import worker_id
from orbax_bench_core.state import Digest, StateCache, build_mesh, check_digest
from orbax_bench_core.sweep import SweepPoint, expand_here
from orbax_bench_core.testing.outcome import Outcome
from orbax_bench_core.worker import Task, WorkerSetup
from orbax_bench_core.worker.repeat import run_repeat


def run_benchmark(
    benchmark: type[BenchmarksGenerator] | str,
    directory: str,
    *,
    options: Mapping[str, Any] | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    mesh: Mapping[str, Any] | None = None,
    execution: Mapping[str, Any] | None = None,
    repeats: int = 1,
    verify: bool = True,
) -> list[Outcome]:
    """Runs every sweep point of a benchmark here, in this process, and keeps what was measured.

    The arguments are those of a suite file, so that a list among the options is swept; what a suite
    would refuse is refused here with the same message.

        spec = {"w": {"dtype": "float32", "shape": [1024]}}
        [outcome] = run_benchmark(Save, str(tmp_path), checkpoint={"spec": spec})
        outcome.assert_passed()
        outcome.assert_verified()

    Args:
        benchmark: The class, or what a suite would call it.
        directory: Where the checkpoints go.
        options: Options of the benchmark.
        checkpoint: The `checkpoint_config` block.
        mesh: The `mesh_config` block; it needs as many devices as JAX has here.
        execution: The `execution` block, for its `cache` and `durable`.
        repeats: How often each point runs.
        verify: Whether `context.verify` compares.

    Returns:
        One outcome for each repeat of each point, failed ones too: ask `assert_passed`.

    Raises:
        UserError: A suite with these blocks would be invalid, or a mesh cannot hold the spec.
    """
    loaded = _suite(benchmark, options, checkpoint, mesh, execution)
    expansion = expand_here(loaded)
    if expansion.skipped:
        raise UserError(*(skip.reason for skip in expansion.skipped))
    states = StateCache()
    setup = WorkerSetup(root=str(directory), x64=_has_x64(), num_devices=1)
    outcomes = []
    for point in expansion.points:
        for repeat in range(repeats):
            task = Task(
                run_id="test",
                suite=loaded.suite.suite_name,
                config_hash=loaded.suite.identity,
                point=point,
                repeat=repeat,
                warmup=False,
                verify=verify,
                traced=isinstance(point, SweepPoint) and point.is_traced,
            )
            record = run_repeat(task, setup, states, {}, worker_id(), _ignore)
            outcomes.append(Outcome(record))
    return outcomes


def _suite(
    benchmark: type[BenchmarksGenerator] | str,
    options: Mapping[str, Any] | None,
    checkpoint: Mapping[str, Any] | None,
    mesh: Mapping[str, Any] | None,
    execution: Mapping[str, Any] | None,
) -> LoadedSuite:
    path = (
        benchmark
        if isinstance(benchmark, str)
        else f"{benchmark.__module__}.{benchmark.__qualname__}"
    )
    blocks = {
        "suite_name": f"test of {path.rpartition('.')[2]}",
        "benchmarks": [{"generator": path, "options": dict(options or {})}],
        "checkpoint_config": checkpoint,
        "mesh_config": mesh,
        "execution": dict(execution or {}),
    }
    # JSON is YAML, and a suite is read from text: nothing can get past its checks.
    text = json.dumps({name: block for name, block in blocks.items() if block})
    return parse_suite(text, str(blocks["suite_name"]))


def _ignore(samples: Sequence[Sample]) -> None:
    """Drops samples that are reported one by one: the record has them all."""
    del samples


def _has_x64() -> bool:
    import jax

    return jax.dtypes.canonicalize_dtype("int64").itemsize == 8


def make_context(
    directory: str,
    options: BenchmarkOptions,
    *,
    checkpoint: Mapping[str, Any] | None = None,
    mesh: Mapping[str, Any] | None = None,
) -> TestContext:
    """Makes the context of one repeat; nothing is controlled and nothing is traced.

    Args:
        directory: The working directory, which must exist.
        options: The options of the benchmark.
        checkpoint: The `checkpoint_config` block that `pytree` is made from.
        mesh: The `mesh_config` block; it needs as many devices as JAX has here.

    Raises:
        ValueError: A block is invalid, or the devices cannot form the mesh.
    """
    from etils import epath

    layout = None if mesh is None else MeshConfig(**mesh)
    config = expanded(CheckpointConfig(**(checkpoint or {})), layout)
    devices = None if layout is None else build_mesh(layout)
    made = StateCache().get(config, layout, devices)
    return TestContext(
        pytree=made.tree,
        path=epath.Path(directory),
        options=options,
        mesh=devices,
        repeat_index=0,
        name="test",
        verifier=_verifier(made.digest),
        checkpoint=config,
    )


def _verifier(saved: Mapping[str, str]) -> Verifier:
    def verify(restored: Any, expected: Any) -> None:
        check_digest(restored, Digest(saved) if expected is None else expected)

    return verify
