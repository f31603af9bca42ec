"""Binding options to a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from orbax_bench_core.authoring.generator import BenchmarksGenerator
from orbax_bench_core.authoring.options import BenchmarkOptions

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
