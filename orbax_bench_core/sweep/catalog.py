"""Catalog of the built-in benchmarks by name, and import of the class that a suite names."""

import importlib
import inspect
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import did_you_mean
from orbax_bench_core.interface import BenchmarkOptions, BenchmarksGenerator

_UPSTREAM: Final = "orbax.checkpoint._src.testing.benchmarks."

BUILTINS: Final[dict[str, str]] = {
    name: f"orbax_bench_core.benchmarks.{place}"
    for name, place in {
        "save_restore": "save_restore.SaveRestore",
        "train_interference": "interference.TrainInterference",
        "staged_save": "staged_save.StagedSave",
        "checkpoint_interval": "interference.CheckpointInterval",
        "training_job": "training_job.TrainingJob",
        "resharding": "resharding.Resharding",
        "restore_and_broadcast": "resharding.RestoreAndBroadcast",
        "replica_parallel_multislice": "resharding.ReplicaParallelMultislice",
        "orbax_load": "loads.OrbaxLoad",
        "safetensors_load": "loads.SafetensorsLoad",
        "pytree_checkpoint": "pytree_checkpoint.PyTreeCheckpoint",
        "array_handler": "array_handler.ArrayHandler",
        "checkpoint_manager": "checkpoint_manager.CheckpointManager",
        "checkpoint_manager_perf": "checkpoint_manager.CheckpointManagerPerf",
        "checkpoint_policy": "checkpoint_policy.CheckpointPolicy",
        "deleter": "checkpoint_manager.Deleter",
        "checkpointables": "checkpointables.Checkpointables",
        "partial_checkpoint": "partial_checkpoint.PartialCheckpoint",
        "v0_cancel": "cancel.V0Cancel",
        "v1_cancel": "cancel.V1Cancel",
        "single_replica": "pytree_checkpoint.SingleReplica",
        "multislice_broadcast": "multislice_broadcast.MultisliceBroadcast",
        "emergency_checkpoint_manager": "two_tiers.EmergencyCheckpointManager",
        "p2p_checkpoint_manager": "two_tiers.P2pCheckpointManager",
        "multihost_dispatchers": "multihost_dispatchers.MultihostDispatchers",
        "snapshotter": "snapshotter.Snapshotter",
        "lustre": "save_restore.Lustre",
        "nnx_restore": "nnx_restore.NnxRestore",
        "pytorch_dcp": "pytorch_dcp.PyTorchDcp",
        "torch_save": "torch_files.TorchSave",
        "pytorch_safetensors": "torch_files.PyTorchSafetensors",
    }.items()
}
"""Name of each built-in and the import path of its class, which may change; ids have the name.

Modules of built-ins import JAX and Orbax only inside functions, so that the orchestrator can read
their options.
"""

_SYSTEMS: Final = {
    "pytorch_dcp": "PyTorch DCP",
    "torch_save": "torch.save",
    "pytorch_safetensors": "safetensors with PyTorch",
}

_UPSTREAM_PATHS: Final[dict[str, str]] = {
    _UPSTREAM + path: name
    for path, name in {
        "v1.benchmark.Benchmark": "save_restore",
        "v1.resharding_benchmark.ReshardingBenchmark": "resharding",
        "v1.restore_and_broadcast_benchmark.RestoreAndBroadcastBenchmark": "restore_and_broadcast",
        "v1.replica_parallel_multislice_benchmark.ReplicaParallelMultislice": (
            "replica_parallel_multislice"
        ),
        "v1.snapshotter_benchmark.SnapshotterBenchmark": "snapshotter",
        "array_handler_benchmark.ArrayHandlerBenchmark": "array_handler",
        "checkpoint_manager_benchmark.CheckpointManagerBenchmark": "checkpoint_manager",
        "checkpoint_manager_perf_benchmark.CheckpointManagerPerfBenchmark": (
            "checkpoint_manager_perf"
        ),
        "checkpoint_policy_benchmark.CheckpointPolicyBenchmark": "checkpoint_policy",
        "deleter_benchmark.DeleterBenchmark": "deleter",
        "emergency_checkpoint_manager_benchmark.EmergencyCheckpointManagerBenchmark": (
            "emergency_checkpoint_manager"
        ),
        "multihost_dispatchers_benchmark.MultihostDispatchersBenchmark": "multihost_dispatchers",
        "multislice_broadcast_benchmark.MultisliceBroadcastBenchmark": "multislice_broadcast",
        "orbax_load.load_benchmark.OrbaxLoadBenchmark": "orbax_load",
        "p2p_checkpoint_manager_benchmark.P2pCheckpointManagerBenchmark": "p2p_checkpoint_manager",
        "pytorch_checkpoint_benchmark.PyTorchCheckpointBenchmark": "pytorch_dcp",
        "pytree_checkpoint_benchmark.PyTreeCheckpointBenchmark": "pytree_checkpoint",
        "safetensors.load_benchmark.SafetensorLoadBenchmark": "safetensors_load",
        "single_replica_benchmark.SingleReplicaBenchmark": "single_replica",
        "v0_checkpointer_cancel_benchmark.V0CheckpointerCancelBenchmark": "v0_cancel",
        "v1_checkpointer_cancel_benchmark.V1CheckpointerCancelBenchmark": "v1_cancel",
        # As earlier releases, and suites published for these, called them:
        "v1_benchmark.V1Benchmark": "save_restore",
        "v1_resharding_benchmark.V1ReshardingBenchmark": "resharding",
        "safetensor.load_benchmark.SafetensorLoadBenchmark": "safetensors_load",
        "snapshotter_benchmark.SnapshotterBenchmark": "snapshotter",
        "lustre_benchmark.LustreBenchmark": "lustre",
    }.items()
}

_OWN_PATHS: Final[dict[str, str]] = {
    path: name
    for name, current in BUILTINS.items()
    # Each built-in had a module of its own name before; suites may say so.
    for path in (current, f"orbax_bench_core.benchmarks.{name}.{current.rpartition('.')[2]}")
}

_MOVED: Final = {
    "orbax_bench_core.benchmarks.save_restore.StagedSave": "staged_save",
    "orbax_bench_core.benchmarks.without_storage.MultihostDispatchers": "multihost_dispatchers",
    "orbax_bench_core.benchmarks.without_storage.MultisliceBroadcast": "multislice_broadcast",
    "orbax_bench_core.benchmarks.without_storage.Snapshotter": "snapshotter",
}
"""Earlier places of classes that are neither in the current module nor in one of their name."""

_NAMES: Final = _OWN_PATHS | _MOVED | _UPSTREAM_PATHS

_EARLIER_DEFAULTS: Final[dict[str, dict[str, object]]] = {
    f"{_UPSTREAM}v1_benchmark.V1Benchmark": {"use_zarr3": False},
    f"{_UPSTREAM}v1_resharding_benchmark.V1ReshardingBenchmark": {"use_zarr3": False},
}


def system_of(benchmark: str) -> str:
    """Returns the name of what a built-in saves with; empty for other classes.

    Two benchmarks of different systems are compared in a study: neither is a release of the other.
    """
    return _SYSTEMS.get(benchmark, "Orbax" if is_builtin(benchmark) else "")


def benchmark_of(generator: str) -> str:
    """Returns the benchmark that a suite's `generator` names, as a point has it.

    That is the name of a built-in, also where its import path or one of Orbax's own framework is
    given, or else the import path of a class.
    """
    return _NAMES.get(generator, generator)


def names_of(builtin: str) -> tuple[str, ...]:
    """Returns all that a suite may call a built-in: its name, its class, and those of Orbax."""
    return (builtin, *(path for path, name in _NAMES.items() if name == builtin))


def earlier_defaults(generator: str) -> Mapping[str, object]:
    """Returns options whose default was another one under an earlier name of a built-in."""
    return _EARLIER_DEFAULTS.get(generator, {})


def is_builtin(benchmark: str) -> bool:
    """Returns whether a benchmark is a built-in; others are named by an import path."""
    return benchmark in BUILTINS


def short_name(benchmark: str) -> str:
    """Returns the common name of a benchmark: its built-in name or its class name."""
    return benchmark.rsplit(".", 1)[-1]


_IMPORTLIB = importlib.__file__
_OURS = Path(__file__).parents[1]
_NEEDED_BY_UPSTREAM = {"clu", "tensorflow"}


class BenchmarkClassError(Exception):
    """The suite names something that is not a usable benchmark class."""


def load_class(benchmark: str) -> type[BenchmarksGenerator]:
    """Imports a benchmark class: that of a built-in, or the one at `package.module.Class`.

    Raises:
        BenchmarkClassError: There is no such module or class, its import fails, or it is no
            benchmark class with options.
    """
    path = BUILTINS.get(benchmark, benchmark)
    module_path, _, class_name = path.rpartition(".")
    if not module_path:
        raise BenchmarkClassError(
            f"unknown built-in benchmark {path!r}; {did_you_mean(path, BUILTINS)}"
        )
    try:
        module = importlib.import_module(module_path)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's module raises
        raise BenchmarkClassError(
            f"cannot import {module_path!r}: {type(error).__name__}: {error}{author_line(error)}; "
            f"{_import_hint(error)}"
        ) from None
    found = getattr(module, class_name, None)
    if found is None:
        raise BenchmarkClassError(f"module {module_path!r} has no {class_name!r}")
    if not inspect.isclass(found):
        kind = "a function" if inspect.isroutine(found) else f"of type {type(found).__name__}"
        raise BenchmarkClassError(f"{path!r} is {kind}; a benchmark is a class")
    if not issubclass(found, BenchmarksGenerator):
        raise BenchmarkClassError(_not_ours(path, found))
    if found.options_class is None:
        raise BenchmarkClassError(
            f"{path!r} has no options; decorate it with `@benchmark_options(MyOptions)`"
        )
    if inspect.isabstract(found):
        raise BenchmarkClassError(f"{path!r} does not define `test_fn`")
    return found


def options_class(generator: type[BenchmarksGenerator]) -> type[BenchmarkOptions]:
    """Returns the options class of a generator that `load_class` returned."""
    assert generator.options_class is not None
    return generator.options_class


def id_name_of(generator: type[BenchmarksGenerator]) -> str:
    """Returns the `id_name` that a class gives itself; it is not inherited."""
    return generator.id_name if "id_name" in vars(generator) else ""


def source_file(generator: type) -> str:
    """Returns the file that defines a class; empty when it has none, as in a notebook."""
    try:
        return inspect.getsourcefile(generator) or ""
    except (OSError, TypeError):
        return ""


def author_line(error: BaseException) -> str:
    """Returns the line of a user's module that failed, such as ` (my_bench.py:17)`, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith("<")
        and frame.filename != _IMPORTLIB
        and _OURS not in Path(frame.filename).parents
    ]
    if not own:
        return ""
    folder = Path(own[0].filename).parent
    last = [frame for frame in own if Path(frame.filename).parent == folder][-1]
    return f" ({Path(last.filename).name}:{last.lineno})"


def _import_hint(error: BaseException) -> str:
    if not isinstance(error, ImportError):
        return "the module itself fails; correct it there"
    if isinstance(error, ModuleNotFoundError) and error.name in _NEEDED_BY_UPSTREAM:
        return (
            "Orbax's own framework needs it, ours does not: import `authoring` and `measure` from "
            "`orbax_bench_core` instead of its `core` and `metric`"
        )
    return "install it, put it next to the suite file, or name its folder in PYTHONPATH"


def _not_ours(path: str, found: type) -> str:
    if any(base.__module__.startswith("orbax.checkpoint.") for base in found.__mro__):
        return (
            f"{path!r} derives from Orbax's own framework; import `authoring` and `measure` from "
            "`orbax_bench_core` instead of `core` and `metric`"
        )
    return f"{path!r} is not a subclass of orbax_bench_core.authoring.BenchmarksGenerator"
