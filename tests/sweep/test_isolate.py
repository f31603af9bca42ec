"""Benchmark classes are looked at in a process of their own."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from orbax_bench_core.config import SuiteError, load_suite
from orbax_bench_core.sweep.expansion import expand, expand_here
from orbax_bench_core.sweep.other_process import benchmark_environment

DATA = Path(__file__).parent.parent / "data"
MODULE = """
import dataclasses, sys
from orbax_bench_core.authoring import BenchmarkOptions, BenchmarksGenerator, benchmark_options

{prelude}

@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(BenchmarkOptions):
    size: int | list[int] = 1

@benchmark_options(Options)
class Bench(BenchmarksGenerator):
    def test_fn(self, context): ...
"""


@pytest.fixture
def suite_beside(tmp_path):
    """Writes a module and, beside it, a suite that names its class; returns the suite's path."""

    def write(prelude="", options="{size: [1, 2]}"):
        (tmp_path / "beside.py").write_text(MODULE.format(prelude=prelude))
        suite = tmp_path / "suite.yaml"
        suite.write_text(
            f"suite_name: s\nbenchmarks:\n- {{generator: beside.Bench, options: {options}}}\n"
        )
        return str(suite)

    return write


@pytest.mark.slow
def test_a_class_beside_the_suite_is_found(suite_beside):
    expansion = expand(load_suite(suite_beside()))
    assert [point.options["size"] for point in expansion.points] == [1, 2]


PRINTS = "print('{\"points\": 3}'); print('warning!', file=sys.stderr)"


@pytest.mark.slow
def test_what_a_module_prints_does_not_disturb(suite_beside):
    assert len(expand(load_suite(suite_beside(PRINTS))).points) == 2


@pytest.mark.slow
def test_a_mistake_keeps_its_place_on_the_way_back(suite_beside):
    suite = suite_beside(options="{size: banana}")
    with pytest.raises(SuiteError) as caught:
        expand(load_suite(suite))
    (problem,) = caught.value.problems
    assert (
        str(problem)
        == f"{suite}:3: benchmarks[0].options.size: expected a whole number, got 'banana'"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prelude", "message"),
    [
        pytest.param("sys.exit('no chips here')", "SystemExit: no chips here", id="exits"),
        pytest.param("import os; os._exit(0)", "code 0: it printed nothing", id="ends silently"),
        pytest.param("import os; os.abort()", "ended with code -6", id="aborts"),
    ],
)
def test_a_module_that_ends_its_process_is_a_problem_of_the_suite(suite_beside, prelude, message):
    suite = suite_beside(prelude)
    with pytest.raises(SuiteError) as caught:
        expand(load_suite(suite))
    (problem,) = caught.value.problems
    assert problem.file == suite
    assert message in problem.message


@pytest.mark.parametrize(
    ("suite", "before", "after"),
    [
        ("/suites/s.yaml", "/mine", "/suites:/mine"),
        ("/suites/s.yaml", "", "/suites"),
        ("gs://bucket/s.yaml", "/mine", "/mine"),
    ],
)
def test_the_folder_of_the_suite_comes_first_on_the_path(monkeypatch, suite, before, after):
    monkeypatch.setenv("PYTHONPATH", before)
    assert benchmark_environment(suite)["PYTHONPATH"] == after


EXPAND = """
import json, sys
from orbax_bench_core.config.load import load_suite
from orbax_bench_core.sweep.expansion import expand
points = expand(load_suite(sys.argv[1])).points
loaded = {name.partition(".")[0] for name in sys.modules}
print(json.dumps([[point.options["use_ocdbt"] for point in points],
                  sorted(loaded & {"jax", "orbax", "guide_benchmark"})]))
"""


@pytest.mark.slow
def test_the_class_of_the_guide_expands_without_jax_in_this_process():
    process = subprocess.run(
        [sys.executable, "-c", EXPAND, str(DATA / "guide.yaml")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(process.stdout) == [[True, False], []]


LLAMA = "evaluations/model_sizes/llama-8b.yaml"


def published():
    """Every suite file in a folder `configs` of Orbax's framework, by its path from there."""
    (folder,) = importlib.util.find_spec(
        "orbax.checkpoint._src.testing.benchmarks"
    ).submodule_search_locations
    files = Path(folder).rglob("*.yaml")
    return {
        str(file.relative_to(folder)): file for file in sorted(files) if "configs" in file.parts
    }


@pytest.mark.parametrize("name", published())
def test_every_one_expands(name):
    assert expand_here(load_suite(str(published()[name]))).points


def test_a_suite_of_a_large_checkpoint_is_scaled_by_an_override():
    file = str(published()[f"configs/{LLAMA}"])
    loaded = load_suite(file, ["checkpoint_config={model: llama-8b, scale: 0.01}"])
    (point,) = expand_here(loaded).points
    assert point.checkpoint.label == "llama-8b@0.01"
    assert point.checkpoint.num_bytes < 10 * 2**20
    assert point.num_devices == 4


def test_a_suite_for_simdevice_is_refused(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_text(
        "suite_name: s\nsimdevice: {device_type: v5p, topology: [2, 2, 1]}\n"
        "benchmarks: [{generator: save_restore, options: {}}]\n"
    )
    message = "simulated devices need the `simdevice` plugin, which is not published"
    with pytest.raises(SuiteError, match=message):
        load_suite(str(file))
