"""The benchmark class, with and without its options as a parameter."""

import dataclasses
import typing

import pytest

from orbax_bench_core import authoring
from orbax_bench_core.measure import Metrics


@dataclasses.dataclass(frozen=True, kw_only=True)
class SizeOptions(authoring.BenchmarkOptions):
    size: authoring.Sweepable[int] = 1
    limit: authoring.Sweepable[float | None] = None


@authoring.benchmark_options(SizeOptions)
class WithParameter(authoring.BenchmarksGenerator[SizeOptions]):
    def test_fn(self, context: authoring.TestContext[SizeOptions]) -> authoring.TestResult:
        return authoring.TestResult(metrics=Metrics(str(context.options.size)))


@authoring.benchmark_options(SizeOptions)
class WithoutParameter(authoring.BenchmarksGenerator):
    def test_fn(self, context: authoring.TestContext) -> authoring.TestResult:
        return authoring.TestResult(metrics=Metrics(str(context.options.size)))


@pytest.mark.parametrize("benchmark_class", [WithParameter, WithoutParameter])
def test_the_options_are_those_of_the_decorator_with_and_without_a_parameter(benchmark_class):
    context = authoring.TestContext(pytree=None, path=None, options=SizeOptions(size=3))
    assert benchmark_class.options_class is SizeOptions
    assert benchmark_class().test_fn(context).metrics.name == "3"


def test_an_option_that_can_be_swept_takes_a_value_or_a_list_at_run_time():
    types = typing.get_type_hints(SizeOptions)
    assert types["size"] == int | list[int]
    assert types["limit"] == float | list[float | None] | None


def test_a_benchmark_without_test_fn_cannot_be_made():
    with pytest.raises(TypeError, match="test_fn"):
        type("Empty", (authoring.BenchmarksGenerator,), {})()
