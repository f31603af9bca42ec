"""The knobs of a benchmark."""

import dataclasses

import pytest

from orbax_bench_core import authoring


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(authoring.BenchmarkOptions):
    size: int = 1


def test_pytest_does_not_take_our_classes_for_tests():
    assert not authoring.TestContext.__test__
    assert not authoring.TestResult.__test__


def test_an_unknown_value_is_an_error():
    with pytest.raises(TypeError, match="sise"):
        Options.from_dict({"sise": 3})


def test_the_decorator_takes_an_options_class_and_decorates_a_benchmark_only():
    for given in (dict, Options(), "Options", None):
        with pytest.raises(TypeError, match="expected a subclass of BenchmarkOptions, got"):
            authoring.benchmark_options(given)
    for decorated in (dict, Options, print):
        with pytest.raises(TypeError, match="expected a subclass of BenchmarksGenerator, got"):
            authoring.benchmark_options(Options)(decorated)
