"""Classes and suites of Orbax's own framework that are moved over."""

import importlib.util
import sys
from pathlib import Path

import pytest

from orbax_bench_core import authoring, measure
from orbax_bench_core.config import load_suite, parse_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.suite_files import migrate
from orbax_bench_core.sweep import expand_here, load_class
from orbax_bench_core.testing import run_benchmark

NAME = "orbax.checkpoint._src.testing.benchmarks"
(FOLDER,) = map(Path, importlib.util.find_spec(NAME).submodule_search_locations)
MODULES = sorted(
    file
    for file in FOLDER.rglob("*_benchmark.py")
    if not {"core", "tpu_vm", "xpk"} & set(file.relative_to(FOLDER).parts)
)
SUITES = sorted(file for file in FOLDER.rglob("*.yaml") if "configs" in file.parts)

HEAD = "# kept\n'''docs'''\n"
IMPORTS = {
    "usual": f"from {NAME}.core import core as c\nfrom {NAME}.core import metric as m\n",
    "without an alias": f"from {NAME}.core import core, metric as m\nc = core\n",
    "in brackets": f"from {NAME}.core import (\n    core as c,  # the core\n    metric as m,\n)\n",
    "names": f"from {NAME}.core.core import BenchmarkOptions as O, TestResult\n"
    f"from {NAME}.core.metric import Metrics\nimport types\n"
    "c = types.SimpleNamespace(BenchmarkOptions=O, TestResult=TestResult)\n"
    "m = types.SimpleNamespace(Metrics=Metrics)\n",
    "everything": f"from {NAME}.core.core import *\nfrom {NAME}.core.metric import Metrics\n"
    "class c: BenchmarkOptions, TestResult = BenchmarkOptions, TestResult\n"
    "class m: Metrics = Metrics\n",
    "modules": f"import {NAME}.core.core as c, os, {NAME}.core.metric as m\nassert os.sep\n",
    "dotted": f"import {NAME}.core.core\nimport {NAME}.core.metric\n"
    f"class c:\n    BenchmarkOptions = {NAME}.core.core.BenchmarkOptions\n"
    f"    TestResult = {NAME}.core.core.TestResult\n"
    f"class m: Metrics = {NAME}.core.metric.Metrics\n",
    "inside": f"def f():\n    if True:\n        from {NAME}.core import core, metric  # here\n"
    "        return core, metric\nc, m = f()\n",
    "on one line": f"if True: x = 1; from {NAME}.core import core as c, metric as m; y = 2\n",
    "after other alphabets": f"ä = 'öß'; from {NAME}.core import core as c, metric as m\n",
    "after a form feed": f"x = '\x0c\u2028'\nfrom {NAME}.core import core as c, metric as m\n",
    "with Windows' line ends": f"from {NAME}.core import core as c\r\n"
    f"from {NAME}.core import metric as m\r\n",
}


@pytest.mark.parametrize("form", IMPORTS)
def test_imports_are_moved_whatever_they_are_called(form):
    moved = migrate(HEAD + IMPORTS[form], "a.py")
    assert moved.left == ()
    assert moved.after.startswith(HEAD)
    assert f"{NAME}.core" not in moved.after
    found = {}
    exec(compile(moved.after, "a.py", "exec"), found)  # what it imports is what counts
    assert found["c"].BenchmarkOptions is authoring.BenchmarkOptions
    assert found["c"].TestResult is authoring.TestResult
    assert found["m"].Metrics is measure.Metrics


def test_nothing_else_of_the_file_changes():
    text = f"x  = 1 # odd\n\n\nfrom {NAME}.core import core as c   # why\n\ty=2\n".replace("\t", "")
    after = migrate(text, "a.py").after
    assert after == text.replace(
        f"from {NAME}.core import core as c", "from orbax_bench_core import authoring as c"
    )


def test_a_text_that_names_a_module_is_moved():
    moved = migrate(
        f"x = importlib.import_module('{NAME}.core.core')  # {NAME}.core.gone\n", "a.py"
    )
    assert moved.after == (
        f"x = importlib.import_module('orbax_bench_core.authoring')  # {NAME}.core.gone\n"
    )
    assert moved.left == ()


def test_a_result_names_its_metrics():
    text = f"from {NAME}.core import core\nr = core.TestResult(m)\ns = core.TestResult(metrics=m)\n"
    assert migrate(text, "a.py").after.splitlines()[1:] == [
        "r = core.TestResult(metrics=m)",
        "s = core.TestResult(metrics=m)",
    ]


CLASS = "class B(core.BenchmarksGenerator):\n  def test_fn(self, context):\n    "


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "core.Benchmark()",
            2,
            "orbax_bench_core.authoring has no `Benchmark`: a worker runs each sweep point",
        ),
        ("metric.TimeMetric()", 2, "orbax_bench_core.measure has no `TimeMetric`"),
        ("core.TestResult(metrics=m, error=e)", 2, "TestResult takes no `error` here: raise it"),
        ("x = metric.Metrics()\nwith x.time('a'):\n  pass", 3, "has no `time` here: a block"),
        ("r.is_successful()", 2, "failures are raised"),
        (f"{CLASS.partition('test_fn')[0]}generate(self): ...", 3, "`generate` of a benchm"),
        (f"from {NAME}.v1 import benchmark", 2, "the built-in `save_restore` here: name that in"),
        (f"from {NAME}.v1.benchmark import Benchmark", 2, "from orbax_bench_core.benchmarks"),
        (f"from {NAME} import run_benchmarks", 2, "core.run_benchmarks` takes its flags"),
        (f"import {NAME}.core.config_parsing", 2, "config_parsing has no counterpart here"),
        ("def f(m: metric.Metrics):\n  m.time('a')", 3, "`Metrics` has no `time`"),
        ("from mine import my_metrics\nmy_metrics.report()", 3, "`Metrics` has no `report`"),
        (f"from {NAME}.core.metric import Metrics as M\nM().time('a')", 3, "has no `time`"),
        ("def make():\n  return metric.Metrics()\nmake().time('a')", 4, "has no `time`"),
        ("(q := metric.Metrics()).time('a')", 2, "`Metrics` has no `time`"),
        ("metric.Metrics().measure(operation_name='a')", 2, "first argument `name` here"),
        (f"{CLASS}self._checkpoint_configs", 4, "has no `_checkpoint_configs` here: take it from"),
        ("r = core.TestResult(metrics=m)\nr.error", 3, "`TestResult` has no `error` here"),
        ("from orbax.checkpoint._src.testing import benchmarks", 2, "reached through its package"),
        ("import orbax.checkpoint as ocp\nocp._src.testing.benchmarks.core", 3, "its package"),
        (f"import importlib\nimportlib.import_module('{NAME}.core.gone')", 3, "no counterpart"),
    ],
)
def test_what_would_not_run_is_named_with_its_line_wherever_it_comes_from(text, line, said):
    (problem,) = migrate(f"from {NAME}.core import core, metric\n{text}\n", "a.py").left
    assert (problem.file, problem.line) == ("a.py", line)
    assert said in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.time()",
        "import metrics\nmetrics.report()",
        "x.error = 1; x.error",
        f"{CLASS}context.step = 1; context.step",
        f"{CLASS}context.pytree, context.options.mine, context.trace_path('a')",
        f"x = '{NAME}.v1.benchmark.Benchmark'",
        "core.TestSuite('s', []).run()",
    ],
)
def test_what_runs_is_not_named(text):
    assert migrate(f"from {NAME}.core import core, metric\n{text}\n", "a.py").left == ()


def test_helpers_of_the_framework_stay_and_are_noted():
    text = f"from {NAME}.core import core, pytree_utils as p\n"
    moved = migrate(text, "a.py")
    assert moved.after == (
        "from orbax_bench_core import authoring as core\n"
        f"from {NAME}.core import pytree_utils as p\n"
    )
    assert (moved.left, len(moved.notes)) == ((), 1)


@pytest.mark.parametrize(
    ("text", "file", "message"),
    [
        ("def", "a.py", "a.py:1: is no Python module: "),
        ("\0", "a.py", "a.py: is no Python module: "),
        ("a: [", "a.yaml", "a.yaml:1: "),
        ("", "a.txt", "a.txt: is neither a module (.py) nor a suite (.yaml)"),
    ],
)
def test_what_cannot_be_read_is_one_message(text, file, message):
    with pytest.raises(UserError) as caught:
        migrate(text, file)
    assert str(caught.value).startswith(message)


@pytest.mark.slow
@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_every_module_of_orbax_is_moved_and_what_is_left_is_said(file, tmp_path, monkeypatch):
    name = f"moved_{'_'.join(file.relative_to(FOLDER).with_suffix('').parts)}"
    moved = migrate(file.read_text(), str(file))
    assert moved.before != moved.after
    assert f"{NAME}.core import core" not in moved.after
    (tmp_path / f"{name}.py").write_text(moved.after)
    monkeypatch.syspath_prepend(str(tmp_path))
    classes = [line for line in moved.after.splitlines() if "BenchmarksGenerator)" in line]
    if moved.left or file.stem == "pytorch_checkpoint_benchmark":
        return  # its line says what is to be done; PyTorch is an extra
    (class_name,) = (line.split()[1].partition("(")[0] for line in classes)
    try:
        assert load_class(f"{name}.{class_name}").options_class is not None
    finally:
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_every_suite_of_orbax_measures_the_same_after_it_is_moved():
    changed = 0
    for file in SUITES:
        moved = migrate(file.read_text(), str(file))
        assert moved.left == (), file
        before = expand_here(load_suite(str(file)))
        after = expand_here(parse_suite(moved.after, str(file)))
        assert [point.id for point in after.points] == [point.id for point in before.points]
        assert f'generator: "{NAME}' not in moved.after
        changed += moved.before != moved.after
    assert changed == len(SUITES)


def test_of_a_suite_only_generators_change():
    text = (
        "# kept\nsuite_name: 'ä' # too\nbenchmarks:\n"
        f"- generator: '{NAME}.v1.benchmark.Benchmark'   # why\n  options: {{}}\n"
        f"- {{generator: {NAME}.v1.benchmark.Benchmark, options: {{}}}}\n"
        "- {generator: my.own.Benchmark, options: {}}\n"
        f"arms: {{candidate: {{generator: {NAME}.pytree_checkpoint_benchmark."
        "PyTreeCheckpointBenchmark}}\n"
    )
    moved = migrate(text, "a.yaml")
    assert moved.after == text.replace(f"{NAME}.v1.benchmark.Benchmark", "save_restore").replace(
        f"{NAME}.pytree_checkpoint_benchmark.PyTreeCheckpointBenchmark", "pytree_checkpoint"
    )


def test_a_suite_says_what_it_cannot_have():
    text = (
        "suite_name: s\nsimdevice: {device_type: v5p}\nbenchmarks:\n"
        f"- {{generator: {NAME}.gone.Gone, options: {{}}}}\n"
    )
    moved = migrate(text, "a.yaml")
    assert {problem.line for problem in moved.left} == {2, 4}
    assert moved.before == moved.after


@pytest.mark.slow
def test_a_class_of_orbax_that_was_moved_measures_and_saves(tmp_path, monkeypatch):
    file = FOLDER / "pytree_checkpoint_benchmark.py"
    (tmp_path / "moved_pytree.py").write_text(migrate(file.read_text(), str(file)).after)
    monkeypatch.syspath_prepend(str(tmp_path))
    (outcome,) = run_benchmark(
        load_class("moved_pytree.PyTreeCheckpointBenchmark"),
        str(tmp_path / "run"),
        checkpoint={"spec": {"w": {"dtype": "float32", "shape": [64], "sharding": ["x"]}}},
        mesh={"mesh_axes": ["x"], "ici_parallelism": {"x": 8}},
    )
    outcome.assert_passed()
    assert {"save", "restore"} & set(outcome.operations)
    assert outcome.record.inventory.total_bytes > 0
