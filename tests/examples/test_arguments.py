"""Examples that are given nothing, or something else than they take."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("kfp")
pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("script", "given", "needs"),
    [
        ("use_in_your_pipeline.py", [], "DIR: where the results go"),
        ("own_package/pipeline.py", [], "run DIR | compile FILE"),
        ("own_package/pipeline.py", ["walk", "out"], "run DIR | compile FILE"),
    ],
)
def test_an_example_says_what_it_needs(script, given, needs):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *given],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python ")
    assert needs in done.stderr
    assert "Traceback" not in done.stderr
