"""Benchmark class and its result: what a benchmark author subclasses and returns."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import typing_extensions

from orbax_bench_core.interface.options import BenchmarkOptions
from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.interface.context import TestContext

# Covariant, so that `type[BenchmarksGenerator]` means a benchmark with options of any class: who
# runs one builds the options of its own class.
Options_co = typing_extensions.TypeVar(
    "Options_co", bound=BenchmarkOptions, default=BenchmarkOptions, covariant=True
)


class BenchmarksGenerator(abc.ABC, Generic[Options_co]):
    """A benchmark: subclass it, bind options with `benchmark_options`, write `test_fn`.

    With the options class as its parameter, `context.options` is of that class for type checkers:
    `class Save(BenchmarksGenerator[SaveOptions])` with `test_fn(self, context:
    TestContext[SaveOptions])`. The parameter may be left out, and changes nothing at run time.

        @benchmark_options(SaveOptions)
        class Save(BenchmarksGenerator[SaveOptions]):
            def test_fn(self, context: TestContext[SaveOptions]) -> TestResult:
                metrics = Metrics()
                with metrics.measure("save"):
                    ocp.save(context.path / "ckpt", context.pytree)
                return TestResult(metrics=metrics)

    Attributes:
        options_class: Set by the `benchmark_options` decorator.
        id_name: What ids of sweep points have for the class in place of its import path, so that
            it can move and still be compared with earlier runs; not inherited.
        suite_arguments: What it was made with for a `TestSuite`; empty in a worker, where all of it
            is in the context.
    """

    options_class: ClassVar[type[BenchmarkOptions] | None] = None
    id_name: ClassVar[str] = ""
    suite_arguments: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        checkpoint_configs: Sequence[Any] = (),
        options: Options_co | None = None,
        output_dir: str | None = None,
        mesh_configs: Sequence[Any] | None = None,
        local_directory: str | None = None,
    ) -> None:
        """Takes what a `TestSuite` runs it with; a worker gives nothing.

        Args:
            checkpoint_configs: What to save and load; swept.
            options: The options; a list is swept.
            output_dir: Unused: the suite has it.
            mesh_configs: Device meshes; swept. None runs without one.
            local_directory: Unused: the suite has it.
        """
        del output_dir, local_directory
        self.suite_arguments = {
            "checkpoint_configs": checkpoint_configs,
            "options": options,
            "mesh_configs": mesh_configs,
        }

    @abc.abstractmethod
    def test_fn(self, context: TestContext[Options_co]) -> TestResult:
        """Runs one repeat of one sweep point.

        Args:
            context: What to run on. `context.pytree` and every array in it is ready.

        Returns:
            The metrics that were measured. Raise to mark the repeat as failed: what was measured
            until then is kept.
        """


Generator = TypeVar("Generator", bound=type[BenchmarksGenerator])


def benchmark_options(
    options_class: type[BenchmarkOptions],
) -> Callable[[Generator], Generator]:
    """Binds an options class to a `BenchmarksGenerator`.

    Args:
        options_class: A subclass of `BenchmarkOptions`.

    Raises:
        TypeError: `options_class` is not one, or the decorated class is not a generator.
    """
    if not (isinstance(options_class, type) and issubclass(options_class, BenchmarkOptions)):
        raise TypeError(f"expected a subclass of BenchmarkOptions, got {options_class!r}")

    def bind(generator: Generator) -> Generator:
        if not (isinstance(generator, type) and issubclass(generator, BenchmarksGenerator)):
            raise TypeError(f"expected a subclass of BenchmarksGenerator, got {generator!r}")
        generator.options_class = options_class
        return generator

    return bind


class VerificationError(Exception):
    """Restored values are not the values that were saved."""


@dataclasses.dataclass(kw_only=True)
class TestResult:
    """The outcome of one repeat.

    Attributes:
        metrics: What was measured.
        inventory_path: What the record lists the files of, for a benchmark that loads a checkpoint
            from elsewhere; None for what the repeat left under its own `path`.
    """

    __test__ = False  # not a test case, whatever pytest makes of the name

    metrics: Metrics
    inventory_path: epath.Path | None = None
