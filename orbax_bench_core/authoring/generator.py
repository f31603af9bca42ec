"""The class that holds the measured code."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from orbax_bench_core.authoring.context import TestContext
    from orbax_bench_core.authoring.options import BenchmarkOptions
    from orbax_bench_core.authoring.result import TestResult


class BenchmarksGenerator(abc.ABC):
    """A benchmark: subclass it, bind options with `benchmark_options`, write `test_fn`.

    Attributes:
        options_class: Set by the `benchmark_options` decorator.
    """

    options_class: ClassVar[type[BenchmarkOptions] | None] = None

    @abc.abstractmethod
    def test_fn(self, context: TestContext) -> TestResult:
        """Runs one repeat of one sweep point.

        Args:
            context: What to run on. `context.pytree` and every array in it is ready.

        Returns:
            The metrics that were measured. Raise to mark the repeat as failed: what was measured
            until then is kept.
        """
