"""Benchmark class, its options and its result: what a benchmark author subclasses and returns."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Self, TypeVar, Union

import typing_extensions

from orbax_bench_core.measure import Metrics

if TYPE_CHECKING:
    from etils import epath

    from orbax_bench_core.interface.context import TestContext

_T = TypeVar("_T")
if TYPE_CHECKING:
    # An instance holds one value. The list form is only for suite files.
    Sweepable = Annotated[_T, "one value, or in a suite file a list of them"]
else:
    Sweepable = Union[_T, list[_T]]  # noqa: UP007 - an alias with a parameter


LATER: Final[Mapping[str, bool]] = {"later": True}
"""Metadata of a field that came after points of its benchmark had been measured: a point has it
only where the suite gives it, so that the ids of the others stay what they were."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """Base of every benchmark's options. Subclass it as a frozen dataclass.

    Any field may be given a list in the suite file: the list is a sweep axis, and each sweep point
    gets an instance with one value per field. Declare such a field as `Sweepable[int]`, which type
    checkers read as `int`, or as `int | list[int]`.

    Attributes:
        enable_trace: Whether to capture a profiler trace of each measured operation, in a warm-up
            more: what is measured is never traced, which would make it slower.
        trace_every_repeat: Whether a traced warm-up comes before every repeat rather than once.
    """

    enable_trace: Sweepable[bool] = False
    trace_every_repeat: Sweepable[bool] = False

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Builds options from one combination of plain values; override to build nested ones.

        Args:
            values: One value per field that the suite file gives.

        Raises:
            TypeError: A key is not a field.
        """
        return cls(**values)

    def is_valid(self) -> bool:
        """Says whether this combination makes sense; invalid ones are dropped from the sweep."""
        return True


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
