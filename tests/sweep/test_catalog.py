"""Built-in benchmarks by name."""

import ast
import dataclasses
import importlib.util
from pathlib import Path

import pytest

from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.catalog import BenchmarkClassError, load_class, options_class

ORBAX = "orbax.checkpoint._src.testing.benchmarks."
OURS = "orbax_bench_core.benchmarks.save_restore.SaveRestore"


@pytest.mark.parametrize(
    ("generator", "benchmark"),
    [
        ("save_restore", "save_restore"),
        (OURS, "save_restore"),
        ("orbax_bench_core.benchmarks.save_restore.StagedSave", "staged_save"),
        ("orbax_bench_core.benchmarks.cancel.V0Cancel", "v0_cancel"),
        ("orbax_bench_core.benchmarks.v0_cancel.V0Cancel", "v0_cancel"),
        (ORBAX + "v1.benchmark.Benchmark", "save_restore"),
        (ORBAX + "pytorch_checkpoint_benchmark.PyTorchCheckpointBenchmark", "pytorch_dcp"),
        ("my.module.Bench", "my.module.Bench"),
        ("unknown", "unknown"),
    ],
)
def test_a_generator_names_a_built_in_or_a_class(generator, benchmark):
    assert catalog.benchmark_of(generator) == benchmark


def upstream_classes():
    """Yields the path and the options class of every benchmark in Orbax's own framework.

    Its modules are read, not imported: they need packages that we do without.
    """
    (folder,) = importlib.util.find_spec(ORBAX.rstrip(".")).submodule_search_locations
    for file in sorted(Path(folder).rglob("*.py")):
        module = ORBAX + ".".join(file.relative_to(folder).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and "benchmark_options" in ast.unparse(
                    decorator.func
                ):
                    yield f"{module}.{node.name}", ast.unparse(decorator.args[0]), file


UPSTREAM = list(upstream_classes())


@pytest.mark.parametrize(("path", "options", "file"), UPSTREAM, ids=[path for path, *_ in UPSTREAM])
def test_every_benchmark_of_orbaxs_framework_is_built_in_with_its_options(path, options, file):
    (node,) = (
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and node.name == options
    )
    upstream = {field.target.id for field in node.body if isinstance(field, ast.AnnAssign)}
    name = catalog.benchmark_of(path)
    assert catalog.is_builtin(name)
    ours = options_class(load_class(name))
    assert upstream <= {field.name for field in dataclasses.fields(ours)}


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
    assert "put it next to the suite file" in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("save_restor", "unknown built-in benchmark 'save_restor'; did you mean 'save_restore'?"),
        ("zzz", "unknown built-in benchmark 'zzz'; the nearest of "),
        (".Bench", "unknown built-in benchmark '.Bench'"),
    ],
)
def test_a_name_without_a_dot_is_a_built_in(only_problem, name, hint):
    problem = only_problem(name)
    assert (problem.line, problem.key) == (3, "benchmarks[0].generator")
    assert hint in problem.message


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
