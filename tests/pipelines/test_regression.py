"""The regression and calibration pipelines, run here: verdict, exit code, baseline, passport."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("kfp")

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[1] / "integration"
SUITE = """\
suite_name: steady
execution: {warmups: 0}
gate: {looks: [10, 20]}
benchmarks:
- generator: steady.Steady
  options: {}
"""


@pytest.fixture
def pipeline(tmp_path):
    """Runs a pipeline from the command line; returns the exit code and what it printed."""
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS), "COLUMNS": "160"}
    for name in ("XLA_FLAGS", "JAX_ENABLE_X64"):
        environment.pop(name, None)

    def run(name, *flags):
        command = ["pipeline", "run", str(suite), "-o", str(tmp_path / "out"), "--pipeline", name]
        done = subprocess.run(
            [sys.executable, "-m", "orbax_bench_core.cli", *command, *flags],
            capture_output=True,
            text=True,
            env=environment,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def verdicts(tmp_path):
    return json.loads((tmp_path / "out" / "verdicts.json").read_text())


def test_a_suite_beside_itself_passes_and_is_captured(pipeline, tmp_path):
    registry = tmp_path / "baselines"
    code, output = pipeline(
        "regression", "--set", "arms={}", "--set", f"registry={registry}", "--set", "promote=true"
    )
    assert code == 0, output
    assert verdicts(tmp_path)["word"] == "PASS"
    assert "PASS" in output
    assert list(registry.glob("*/*/*.json"))


def test_a_slower_candidate_is_a_regression_and_is_not_captured(pipeline, tmp_path):
    registry = tmp_path / "baselines"
    arms = "arms={candidate: {options: {save_s: 0.026}}}"
    code, output = pipeline("regression", "--set", arms, "--set", f"registry={registry}")
    assert code == 3, output
    assert verdicts(tmp_path)["word"] == "REGRESSION"
    assert not registry.exists()


def test_a_calibration_writes_a_passport(pipeline, tmp_path):
    passport = tmp_path / "passport.json"
    code, output = pipeline("calibration", "--set", f"passport={passport}")
    assert code == 0, output
    assert {noise["operation"] for noise in json.loads(passport.read_text())["noise"]} == {
        "save",
        "load",
    }
