"""Benchmarks of an author, in a module of their own."""

import itertools
import textwrap

import pytest

_numbers = itertools.count()
_MODULE = """\
import dataclasses
import jax
from orbax.checkpoint import v1 as ocp
from orbax_bench_core.authoring import (
    BenchmarkOptions, BenchmarksGenerator, TestResult, benchmark_options
)
from orbax_bench_core.measure import Metrics

@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(BenchmarkOptions):
    factor: int | list[int] = 1

@benchmark_options(Options)
class Bench(BenchmarksGenerator):
    def test_fn(self, context):
        metrics = Metrics()
{body}
        return TestResult(metrics=metrics)
"""


@pytest.fixture
def write_benchmark(tmp_path, monkeypatch):
    """Writes a module whose benchmark has the given body, and returns the class's import path."""

    def write(body):
        name = f"authored_{next(_numbers)}"
        text = _MODULE.format(body=textwrap.indent(textwrap.dedent(body), " " * 8))
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return f"{name}.Bench"

    return write
