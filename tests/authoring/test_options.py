"""The knobs of a benchmark."""

import dataclasses

import pytest

from orbax_bench_core.authoring import BenchmarkOptions, BenchmarksGenerator, benchmark_options


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(BenchmarkOptions):
    size: int = 1


class Bench(BenchmarksGenerator):
    def test_fn(self, context): ...


def test_options_have_the_two_fields_that_every_benchmark_has():
    assert BenchmarkOptions() == BenchmarkOptions(enable_trace=False, trace_every_repeat=False)


def test_options_are_built_from_plain_values():
    assert Options.from_dict({"size": 3}) == Options(size=3)


def test_an_unknown_value_is_an_error():
    with pytest.raises(TypeError, match="sise"):
        Options.from_dict({"sise": 3})


def test_a_subclass_may_build_its_own_values():
    class Doubled(Options):
        @classmethod
        def from_dict(cls, values):
            return cls(size=2 * values["size"])

    assert Doubled.from_dict({"size": 3}).size == 6


def test_every_combination_is_valid_by_default():
    assert Options().is_valid()


def test_options_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().size = 2


def test_the_decorator_binds_and_returns_the_class():
    decorated = benchmark_options(Options)(type("Other", (Bench,), {}))
    assert decorated.options_class is Options
    assert decorated.__name__ == "Other"


def test_a_class_that_is_not_decorated_has_no_options():
    assert Bench.options_class is None


@pytest.mark.parametrize("given", [dict, Options(), "Options", None])
def test_the_decorator_takes_an_options_class_only(given):
    with pytest.raises(TypeError, match="expected a subclass of BenchmarkOptions, got"):
        benchmark_options(given)


@pytest.mark.parametrize("decorated", [dict, Options, print])
def test_the_decorator_decorates_a_benchmark_only(decorated):
    with pytest.raises(TypeError, match="expected a subclass of BenchmarksGenerator, got"):
        benchmark_options(Options)(decorated)
