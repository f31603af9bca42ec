"""The command line: in this process, which imports kfp and Google's client once, and in its own."""

import functools
from pathlib import Path

import pytest

from tests.cli.conftest import orbax_bench, run_main  # noqa: F401 - fixtures
from tests.support.processes import run_cli

SUITE = """
suite_name: Small suite
num_repeats: 1
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 8}}
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
"""


def sets(*settings):
    """Returns the words of a command that make some settings."""
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture
def pipeline_command(monkeypatch, orbax_bench):
    """Runs `orbax-bench pipeline ...`."""
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "KF_PIPELINES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return functools.partial(orbax_bench, "pipeline")


@pytest.fixture
def run_pipeline(tmp_path):
    """Runs `orbax-bench pipeline run` on a suite, into `tmp_path / "out"`, in its own process."""
    classes = Path(__file__).parents[1] / "integration"

    def run(suite, name, *flags, classes=classes):
        file = tmp_path / "suite.yaml"
        file.write_text(suite)
        words = ("pipeline", "run", file, "-o", tmp_path / "out", "--pipeline", name, *flags)
        done = run_cli(*words, COLUMNS="160", PYTHONPATH=str(classes))
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    return path
