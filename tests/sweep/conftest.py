"""Suites that name benchmark classes of their own."""

import itertools
import textwrap

import pytest

from orbax_bench_core.config import SuiteError, parse_suite
from orbax_bench_core.sweep.expansion import expand_here

HEADER = """\
import dataclasses
from orbax_bench_core.authoring import (
    BenchmarkOptions, BenchmarksGenerator, TestResult, benchmark_options
)
"""
_numbers = itertools.count()


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Writes a module that can be imported, and returns its name, which is new each time."""

    def write(body):
        name = f"written_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(HEADER + textwrap.dedent(body))
        monkeypatch.syspath_prepend(tmp_path)
        return name

    return write


@pytest.fixture
def write_benchmark(write_module):
    """Writes a benchmark whose options class has the given body; returns its import path."""

    def write(options_body):
        body = textwrap.indent(textwrap.dedent(options_body).strip() or "pass", "    ")
        module = write_module(
            "@dataclasses.dataclass(frozen=True, kw_only=True)\n"
            f"class Options(BenchmarkOptions):\n{body}\n"
            "@benchmark_options(Options)\n"
            "class Bench(BenchmarksGenerator):\n"
            "    def test_fn(self, context): ...\n"
        )
        return f"{module}.Bench"

    return write


@pytest.fixture(scope="session")
def expand():
    """Expands a suite, in this process, from its benchmarks and further lines."""

    def points(*entries, extra=""):
        lines = [f"- {{generator: {path}, options: {options}}}" for path, options in entries]
        text = "\n".join(["suite_name: s", "benchmarks:", *lines, extra])
        return expand_here(parse_suite(text, "suite.yaml"))

    return points


@pytest.fixture(scope="session")
def only_problem(expand):
    """Returns the one thing that is wrong with a suite of one benchmark, on line 3."""

    def find(path, options="{}", extra=""):
        with pytest.raises(SuiteError) as caught:
            expand((path, options), extra=extra)
        assert len(caught.value.problems) == 1, caught.value.problems
        return caught.value.problems[0]

    return find
