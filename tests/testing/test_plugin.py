"""The pytest plugin, in a run of pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import jax
from orbax_bench_core.authoring import BenchmarkOptions

def test_devices():
    assert jax.device_count() == {devices}
    assert jax.numpy.arange(2.0).dtype == "float64"

def test_a_benchmark_runs(run_benchmark):
    (outcome,) = run_benchmark(
        "save_restore", checkpoint={{"spec": {{"w": {{"dtype": "int8", "shape": [4]}}}}}}
    )
    outcome.assert_verified()
    outcome.assert_measured("save", "load")

def test_a_context_is_made(benchmark_context):
    assert benchmark_context(BenchmarkOptions()).path.exists()
"""


def run_pytest(folder, *arguments):
    unset = ("XLA_FLAGS", "JAX_ENABLE_X64", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"PYTHONPATH": os.pathsep.join([str(ROOT), "src"])},
    )
    return process.returncode, process.stdout + process.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ini", "devices"),
    [
        pytest.param("", 8, marks=pytest.mark.nightly),
        ("orbax_bench_devices = 3\n", 3),
    ],
)
def test_an_authors_tests_have_devices_and_fixtures(tmp_path, ini, devices):
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["orbax_bench_core.testing.plugin"]\n')
    (tmp_path / "test_it.py").write_text(TESTS.format(devices=devices))
    code, output = run_pytest(tmp_path)
    assert code == 0, output
    assert "3 passed" in output


@pytest.mark.nightly
@pytest.mark.slow
def test_the_tests_of_the_example_package_pass():
    code, output = run_pytest(ROOT / "examples" / "own_package")
    assert code == 0, output
