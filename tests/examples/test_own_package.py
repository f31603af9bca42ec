"""The example of a package of one's own, in pipelines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("kfp")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "own_package"
ARRAY = {"dtype": "int8", "shape": [64]}
SMALL = {
    "suite_name": "partial load",
    "num_repeats": 1,
    "execution": {"warmups": 0},
    "checkpoint_config": {"spec": {"params": {"w": ARRAY}, "opt_state": {"mu": ARRAY}}},
    "benchmarks": [{"generator": "my_benchmarks.partial_load.PartialLoad", "options": {}}],
}


@pytest.fixture
def environment():
    """An environment that has the package, as after `pip install`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE / "src"), str(ROOT)])}


@pytest.fixture
def suite(tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    return file


def statuses(directory):
    found = directory.glob("records/*/repeat_0/host_0.json")
    return [json.loads(path.read_text())["status"] for path in found]


@pytest.mark.nightly
def test_its_class_is_measured_by_the_steps_of_a_pipeline(environment, suite, tmp_path):
    program = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import pipeline; "
        "pipeline.run(sys.argv[3], pathlib.Path(sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(PACKAGE), str(suite), str(tmp_path / "out")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert statuses(tmp_path / "out") == ["passed"]


def test_it_is_compiled_with_its_image(environment, tmp_path):
    file = tmp_path / "partial.yaml"
    done = subprocess.run(
        [sys.executable, str(PACKAGE / "pipeline.py"), "compile", str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    package = next(yaml.safe_load_all(file.read_text()))
    executors = package["deploymentSpec"]["executors"].values()
    assert {one["container"]["image"] for one in executors} == {"my-benchmarks:0.1.0"}
