"""From options in a suite to one value per option."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import pytest

from orbax_bench_core.authoring import LATER, BenchmarkOptions
from orbax_bench_core.sweep.options import axes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(BenchmarkOptions):
    flag: bool | list[bool] = True
    size: int | list[int | None] | None = None
    share: float = 0.5
    mode: Literal["a", "b"] | Sequence[Literal["a", "b"]] = "a"
    level: list[int] | None = None
    pair: list[list[int]] | None = None
    anything: object = None


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        ("{flg: true}", "flg", "unknown option; did you mean 'flag'?"),
        ("{zzz: true}", "zzz", "unknown option; known: enable_trace, flag, "),
        ("{flag: banana}", "flag", "expected true or false, got 'banana'"),
        ("{flag: 1}", "flag", "expected true or false, got 1"),
        ("{flag: null}", "flag", "expected true or false, got null"),
        ("{flag: [true, banana]}", "flag", "expected true or false, got 'banana'"),
        ("{flag: [[true, false]]}", "flag", "expected true or false, got [True, False]"),
        ("{flag: []}", "flag", "an empty list leaves nothing to sweep; give at least one value"),
        ("{size: 1.5}", "size", "expected a whole number or null, got 1.5"),
        ("{size: true}", "size", "expected a whole number or null, got true"),
        ("{share: lots}", "share", "expected a number, got 'lots'"),
        ("{share: 1e3}", "share", "expected a number, got '1e3', which is text; write 1000.0"),
        ("{share: .inf}", "share", "a number must be finite, got inf"),
        ("{share: [0.5, .nan]}", "share", "a number must be finite, got [0.5, nan]"),
        ("{enable_trace: [true, false]}", "enable_trace", "only warm-ups are traced, so all"),
        ("{enable_trace: 'no'}", "enable_trace", "expected true or false, got 'no'"),
    ],
)
def test_a_bad_option_is_named_at_its_line(write_benchmark, only_problem, given, key, message):
    path = write_benchmark(
        "flag: bool | list[bool] = True\n"
        "size: int | list[int | None] | None = None\n"
        "share: float | list[float] = 0.5\n"
    )
    problem = only_problem(path, given)
    assert (problem.line, problem.key) == (3, f"benchmarks[0].options.{key}")
    assert message in problem.message


def test_an_option_without_default_is_required(write_benchmark, only_problem):
    problem = only_problem(write_benchmark("reference_path: str"))
    assert (problem.line, problem.key) == (3, "benchmarks[0].options.reference_path")
    assert problem.message == "this option is required"


def test_a_class_that_builds_its_own_values_is_given_them_as_they_are(write_benchmark, expand):
    path = write_benchmark(
        """
        policy: str
        @classmethod
        def from_dict(cls, values):
            return cls(policy=values["policy"]["name"])
        def is_valid(self):
            return self.policy != "bad"
        """
    )
    expansion = expand((path, "{policy: [{name: good}, {name: bad}]}"))
    assert [point.options["policy"] for point in expansion.points] == [{"name": "good"}]


@pytest.mark.parametrize(
    ("given", "name", "values"),
    [
        ({}, "flag", [True]),
        ({"flag": False}, "flag", [False]),
        ({"flag": [False, True]}, "flag", [False, True]),
        ({"size": [1, None]}, "size", [1, None]),
        ({"size": [1, 2, 1]}, "size", [1, 2]),
        ({"share": 1}, "share", [1]),
        ({"mode": ["b", "a"]}, "mode", ["b", "a"]),
        ({"level": [1, 2]}, "level", [1, 2]),
        ({"pair": [[1, 2], [3]]}, "pair", [[1, 2], [3]]),
        ({"anything": [True, 1, 1.0]}, "anything", [True, 1, 1.0]),
        ({"anything": {"a": [1, 2]}}, "anything", [{"a": [1, 2]}]),
    ],
)
def test_a_list_is_an_axis_and_anything_else_one_value(given, name, values):
    # As text, because Python takes true for 1.
    assert repr(axes(Options, given)[name]) == repr(values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Grown(Options):
    later: bool = dataclasses.field(default=True, metadata=LATER)


def test_an_option_that_came_later_is_one_of_a_point_only_where_it_is_given():
    assert axes(Grown, {}) == axes(Options, {})
    assert axes(Grown, {"later": [False, True]})["later"] == [False, True]
