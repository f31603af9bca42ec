"""Import of the benchmark class that a suite names."""

from __future__ import annotations

import importlib
import inspect
import traceback
from pathlib import Path

from orbax_bench_core.authoring import BenchmarkOptions, BenchmarksGenerator
from orbax_bench_core.errors import did_you_mean
from orbax_bench_core.sweep.catalog import BUILTINS

_IMPORTLIB = importlib.__file__
_OURS = Path(__file__).parents[1]
_NEEDED_BY_UPSTREAM = {"clu", "tensorflow"}


class BenchmarkClassError(Exception):
    """The suite names something that is not a usable benchmark class."""


def load_class(benchmark: str) -> type[BenchmarksGenerator]:
    """Imports a benchmark class: that of a built-in, or the one at `package.module.Class`."""
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
        return "the module itself fails; mend it there"
    if isinstance(error, ModuleNotFoundError) and error.name in _NEEDED_BY_UPSTREAM:
        return (
            "Orbax's own framework needs it, ours does not: import `authoring` and `measure` from "
            "`orbax_bench_core` instead of its `core` and `metric`"
        )
    return "is it installed, or in the current folder or beside the suite file?"


def _not_ours(path: str, found: type) -> str:
    if any(base.__module__.startswith("orbax.checkpoint.") for base in found.__mro__):
        return (
            f"{path!r} derives from Orbax's own framework; import `authoring` and `measure` from "
            "`orbax_bench_core` instead of `core` and `metric`"
        )
    return f"{path!r} is not a subclass of orbax_bench_core.authoring.BenchmarksGenerator"
