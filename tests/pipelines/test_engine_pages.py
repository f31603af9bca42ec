"""The commands on the page of each engine, as they are written, as far as nothing is sent."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("kfp")
pytest.importorskip("google.cloud.aiplatform")

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "pipelines"


def commands():
    for engine in ("local", "kubeflow", "vertex"):
        for block in re.findall(r"```sh\n(.*?)```", (DOCS / f"{engine}.md").read_text(), re.DOTALL):
            for number, line in enumerate(block.replace("\\\n", " ").strip().splitlines()):
                yield pytest.param(shlex.split(line), id=f"{engine}-{number}")


@pytest.mark.parametrize("words", list(commands()))
def test_a_command_is_one_of_ours(words, pipeline_command, suite, tmp_path):
    assert words[:2] == ["orbax-bench", "pipeline"]
    given = {"SUITE.yaml": str(suite), "sweep.yaml": str(tmp_path / "sweep.yaml")}
    given["results"] = str(tmp_path / "results")
    line = [given.get(word, word) for word in words[2:]]
    dry = [] if line[0] == "compile" else ["--dry-run"]
    done = pipeline_command(*line, *dry)
    assert done.code == 0, done.err
