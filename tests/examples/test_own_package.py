"""The example of a package of one's own, in pipelines."""

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


@pytest.fixture
def environment():
    """An environment that has the package, as after `pip install`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE / "src"), str(ROOT)])}


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
