"""The built-in benchmarks by name, without importing them."""

from __future__ import annotations

from typing import Final

_UPSTREAM: Final = "orbax.checkpoint._src.testing.benchmarks."

BUILTINS: Final[dict[str, str]] = {
    "save_restore": "orbax_bench_core.benchmarks.save_restore.SaveRestore",
    "train_interference": "orbax_bench_core.benchmarks.train_interference.TrainInterference",
}
"""Short name of each built-in and the import path of its class.

Modules of built-ins import JAX and Orbax only inside functions, so that the orchestrator can read
their options.
"""

_UPSTREAM_PATHS: Final[dict[str, str]] = {
    _UPSTREAM + "v1.benchmark.Benchmark": "save_restore",
}


def class_path(generator: str) -> str | None:
    """Returns the import path of the class that a suite's `generator` names.

    Args:
        generator: A built-in name, a path in Orbax's own framework, or any import path.

    Returns:
        The path, or None for a benchmark of Orbax's framework that has no built-in here.
    """
    name = _UPSTREAM_PATHS.get(generator, generator)
    if name in BUILTINS:
        return BUILTINS[name]
    return None if generator.startswith(_UPSTREAM) else generator


def is_builtin(path: str) -> bool:
    """Says whether `path` is the class of a built-in benchmark."""
    return path in BUILTINS.values()


def short_name(path: str) -> str:
    """Returns what people call the benchmark at `path`: its built-in name or its class name."""
    for name, builtin in BUILTINS.items():
        if builtin == path:
            return name
    return path.rsplit(".", 1)[-1]
