"""Commands and the processes that they start import nothing from the folder they are started in."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contents.test_contents import check_list
from tests.support.processes import ROOT, plain_environment

pytestmark = pytest.mark.slow

TRAPS = (
    *("jax.py", "json.py", "kfp/__init__.py", "mine.py", "numpy.py", "orbax/__init__.py"),
    *("orbax_bench_core/__init__.py", "pydantic.py", "rich.py", "runpy.py", "yaml.py"),
)
CLASS = """
from orbax_bench_core.authoring import BenchmarksGenerator, TestResult, benchmark_options
from orbax_bench_core.authoring import BenchmarkOptions
from orbax_bench_core.measure import Metrics

@benchmark_options(BenchmarkOptions)
class Mine(BenchmarksGenerator):
    def test_fn(self, context):
        metrics = Metrics()
        with metrics.measure("save"):
            pass
        return TestResult(metrics=metrics)
"""
MODEL = """
from flax import nnx

def model(rngs):
    return nnx.Linear(4, 4, rngs=rngs)
"""
SPEC = "spec: {w: {dtype: float32, shape: [64]}}"
SUITE = f"""
suite_name: apart
num_repeats: 1
execution: {{warmups: 0}}
checkpoint_config: {{{SPEC}}}
environments: [{{name: here, interpreter: {json.dumps(sys.executable)}}}]
benchmarks: [{{generator: mine.Mine, options: {{}}}}]
"""
COMMANDS = (
    # Each starts processes of another kind: expansion, an environment and its workers; limits; the
    # tree of a model; hosts; the steps of a pipeline. `tests/architecture` sees to all others.
    "run {suites}/mine.yaml -o {out}/run --no-limits --no-lock",
    "limits --path {out} --size 1MiB --no-lock",
    "plan {suites}/model.yaml --mesh x=2",
    "launch {suites}/plain.yaml -o {out}/hosts --on processes --hosts 1 -- --no-limits --no-lock",
    "pipeline run {suites}/plain.yaml -o {out}/pipeline",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of traps to start commands in, another with suites, and one for what they make."""
    folder = tmp_path_factory.mktemp("place")
    for name in TRAPS:
        trap = folder / "traps" / name
        trap.parent.mkdir(parents=True, exist_ok=True)
        trap.write_text(f"import sys\nopen({str(folder / 'sprung')!r}, 'a').write('{name} ')\n")
    suites = folder / "suites"
    suites.mkdir()
    (suites / "mine.py").write_text(CLASS)
    (suites / "model.py").write_text(MODEL)
    plain = SUITE.replace("mine.Mine", "save_restore").replace("environments", "#")
    for name, text in {
        "mine": SUITE,
        "plain": plain,
        "model": plain.replace(SPEC, "nnx: 'model:model'"),
    }.items():
        (suites / f"{name}.yaml").write_text(text)
    (folder / "out").mkdir()
    return folder


def run_among_traps(place, command, *begin):
    words = shlex.split(command.format(suites=place / "suites", out=place / "out"))
    done = subprocess.run(
        [*begin, *words],
        cwd=place / "traps",
        env={**plain_environment(), "PYTHONPATH": str(ROOT), "COLUMNS": "160"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    sprung = (place / "sprung").read_text() if (place / "sprung").exists() else ""
    (place / "sprung").unlink(missing_ok=True)
    assert not sprung, f"executed {sprung}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_starts_imports_nothing_from_there(place, command):
    run_among_traps(place, command, Path(sys.executable).with_name("orbax-bench"))
    for record in (place / "out" / "run").glob("records/*/*/*.json"):
        assert json.loads(record.read_text())["status"] == "passed"
    if "pipeline" in command:  # whose steps leave files that no other command does
        check_list(place / "out" / "pipeline")


@pytest.mark.parametrize("module", ["orbax_bench_core.cli", "orbax_bench_core.run_benchmarks"])
def test_a_module_of_ours_by_safe_path(place, module):
    assert "usage" in run_among_traps(place, "--help", sys.executable, "-P", "-m", module).lower()
