"""Benchmark classes that a suite may name, and messages for others."""

import pytest

from orbax_bench_core.sweep.catalog import BenchmarkClassError, load_class

MODULE = """
@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(BenchmarkOptions):
    pass

@benchmark_options(Options)
class Good(BenchmarksGenerator):
    def test_fn(self, context): ...

def function(context): ...

number = 3

class Plain:
    def test_fn(self, context): ...

class Undecorated(BenchmarksGenerator):
    def test_fn(self, context): ...

@benchmark_options(Options)
class Abstract(BenchmarksGenerator):
    pass

# Orbax's own framework cannot be imported without packages that it does not declare.
Foreign = type("Foreign", (), {"__module__": "orbax.checkpoint._src.testing.benchmarks.core.core"})

class OfOrbax(Foreign):
    def test_fn(self, context): ...
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Missing", "module '{module}' has no 'Missing'"),
        ("function", "'{module}.function' is a function; a benchmark is a class"),
        ("number", "'{module}.number' is of type int; a benchmark is a class"),
        ("Plain", "is not a subclass of orbax_bench_core.authoring.BenchmarksGenerator"),
        ("Undecorated", "has no options; decorate it with `@benchmark_options(MyOptions)`"),
        ("Abstract", "'{module}.Abstract' does not define `test_fn`"),
        ("OfOrbax", "derives from Orbax's own framework; import `authoring` and `measure` from"),
    ],
)
def test_what_is_no_benchmark_is_named_at_its_line(write_module, only_problem, name, message):
    module = write_module(MODULE)
    problem = only_problem(f"{module}.{name}")
    assert (problem.file, problem.line) == ("suite.yaml", 3)
    assert problem.key == "benchmarks[0].generator"
    assert message.format(module=module) in problem.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("raise RuntimeError('no chips')", "RuntimeError: no chips"),
        ("import no_such_package_of_mine", "No module named 'no_such_package_of_mine'"),
        ("1 +", "SyntaxError"),
    ],
)
def test_a_module_that_does_not_import_says_why(write_module, only_problem, body, cause):
    module = write_module(body)
    problem = only_problem(f"{module}.Bench")
    assert problem.key == "benchmarks[0].generator"
    assert problem.message.startswith(f"cannot import {module!r}: ")
    assert cause in problem.message


def test_a_module_that_is_not_there_says_where_it_could_be(only_problem):
    message = only_problem("no_such_module_of_mine.Bench").message
    assert "in the current folder or beside the suite file?" in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("save_restor", "unknown built-in benchmark 'save_restor'; did you mean 'save_restore'?"),
        ("zzz", "unknown built-in benchmark 'zzz'; known: "),
    ],
)
def test_a_name_without_a_dot_is_a_built_in(only_problem, name, hint):
    problem = only_problem(name)
    assert (problem.line, problem.key) == (3, "benchmarks[0].generator")
    assert hint in problem.message


@pytest.mark.parametrize("path", ["Bench", ".Bench"])
def test_a_path_without_a_module_is_refused(path):
    with pytest.raises(BenchmarkClassError, match="unknown built-in benchmark"):
        load_class(path)


def test_a_class_that_still_imports_orbaxs_framework_is_told_what_to_change(tmp_path, monkeypatch):
    (tmp_path / "unmoved_benchmark.py").write_text("import clu.metric_writers\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BenchmarkClassError, match="import `authoring` and `measure`"):
        load_class("unmoved_benchmark.Benchmark")


def test_a_module_that_exits_is_named_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "exiting_bench.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BenchmarkClassError, match=r"SystemExit: 0 \(exiting_bench\.py:2\)"):
        load_class("exiting_bench.Bench")
