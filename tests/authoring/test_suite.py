"""Benchmarks bundled in Python, as scripts for Orbax's own framework do it."""

import dataclasses
import subprocess
import sys

import pytest
from orbax.checkpoint._src.testing.benchmarks.core.configs import CheckpointConfig, MeshConfig

from orbax_bench_core import UserError, authoring, execute
from orbax_bench_core.benchmarks.save_restore import SaveRestore, SaveRestoreOptions
from tests.support.scripted import Scripted, ScriptedOptions

SPEC = {"w": {"dtype": "float32", "shape": [8], "sharding": ["x"]}}


def scripted(**options):
    return Scripted(options=ScriptedOptions(**options))


def bundle(*generators, **fields):
    return authoring.TestSuite("mine", generators, **fields)


def test_benchmarks_checkpoints_and_meshes_become_a_suite():
    generator = SaveRestore(
        [CheckpointConfig(spec=SPEC), {"spec": SPEC, "random_seed": 1}],
        SaveRestoreOptions(use_ocdbt=[True, False]),
        output_dir="unused",
        mesh_configs=[MeshConfig(mesh_axes=["x"], ici_parallelism={"x": 2})],
    )
    (loaded,) = bundle(generator, num_repeats=3).suites()
    (entry,) = loaded.suite.benchmarks
    assert entry.options == {"use_ocdbt": [True, False]}
    assert (loaded.suite.suite_name, loaded.suite.num_repeats) == ("mine", 3)
    assert [each.random_seed for each in loaded.suite.checkpoint_configs] == [0, 1]
    assert loaded.suite.mesh_configs[0].ici_shape == (2,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Odd(authoring.BenchmarkOptions):
    pair: tuple[int, ...] = (1, 2)
    what: object = None


@authoring.benchmark_options(Odd)
class Oddly(authoring.BenchmarksGenerator):
    def test_fn(self, context):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("generator", "fields", "message"),
    [
        (Oddly(options=Odd(pair=(3,))), {}, "the option `pair` is a tuple"),
        (Oddly(options=Odd(what=object())), {}, "an option cannot stand in a suite"),
        (Oddly(), {}, "Oddly takes `options` of "),
        (Oddly(["x"], Odd()), {}, "'x' is no config: give a mapping"),
        (scripted(), {"output_dir": None}, "has no `output_dir`"),
        (scripted(), {"skip_incompatible_mesh_configs": False}, "leave it out"),
        (scripted(), {"num_repeats": 0}, "num_repeats"),
    ],
)
def test_what_no_suite_can_have_is_one_message(generator, fields, message):
    with pytest.raises(UserError, match=message):
        bundle(generator, **{"output_dir": "out", **fields}).run()


def test_a_class_inside_a_function_cannot_be_imported():
    @authoring.benchmark_options(Odd)
    class Inside(authoring.BenchmarksGenerator):
        def test_fn(self, context):
            raise NotImplementedError

    with pytest.raises(UserError, match="define it in a module"):
        bundle(Inside(options=Odd())).suites()


SCRIPT = """
from orbax_bench_core import authoring as core, measure as metric
import dataclasses, json, sys

@dataclasses.dataclass(frozen=True)
class Options(core.BenchmarkOptions):
    size: int = 1

@core.benchmark_options(Options)
class Mine(core.BenchmarksGenerator):
    def test_fn(self, context):
        metrics = metric.Metrics()
        with metrics.measure("work"):
            sum(range(context.options.size))
        return core.TestResult(metrics=metrics)

if __name__ == "__main__":
    suite = core.TestSuite(
        name="script",
        benchmarks_generators=[Mine(checkpoint_configs=[], options=Options(size=[1, 2]))],
        output_dir=sys.argv[1],
        num_repeats=2,
        baseline_capture_path=sys.argv[1] + "_stored",
        baseline_path=sys.argv[2] if len(sys.argv) > 2 else None,
    )
    (run,) = suite.run()
    print(len(run.times()))
"""


@pytest.mark.slow
def test_a_script_with_its_own_class_runs_and_is_compared_with_a_baseline(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "script.py").write_text("raise AssertionError('the current directory counts')")
    command = [sys.executable, tmp_path / "script.py"]
    for given in (["out"], ["again", "out_stored"]):
        done = subprocess.run([*command, *given], cwd=place, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("4\n", "")
    assert (place / "again" / "verdicts.json").exists()
    assert (place / "again" / "report.html").exists()
    words = [*command, "waits"]
    with (
        execute.measuring_lock(print),
        subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as waiting,
    ):
        said = waiting.stderr.readline()  # it was silent for as long as others measured
        waiting.terminate()
    assert said.startswith("waiting: process ")
