"""A pipeline of one's own in containers of our image, whose user may not write everywhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import plain_environment

pytest.importorskip("kfp")
pytest.importorskip("docker", reason="run `make setup`: the package docker is missing")

pytestmark = [pytest.mark.nightly, pytest.mark.extended]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "use_in_your_pipeline.py"
PLAIN = """
import os, sys
from docker.types import Mount
from kfp import local
sys.argv = ["example", "{folder}"]
from example import choose_compression

user = {{"user": f"{{os.getuid()}}:{{os.getgid()}}"}} if {named} else {{}}
mounts = [Mount("{folder}", "{folder}", type="bind")]
local.init(local.DockerRunner(mounts=mounts, **user), pipeline_root="{folder}/outputs")
choose_compression(output_directory="{folder}", width=64)
"""


@pytest.fixture
def own(docker_environment, image, tmp_path):
    """Runs the example, whose other steps take our image too: there is no registry here."""
    text = EXAMPLE.read_text()
    others = '@dsl.component(base_image="python:3.12-slim")'
    assert text.count(others) == 2
    text = text.replace(others, "@dsl.component(base_image=IMAGE, install_kfp_package=False)")
    text = text.replace("Path(__file__).parents[1]", f"Path({str(ROOT)!r})")
    # One CPU device is enough, and containers have no variables of this process by kfp's runner.
    text = text.replace('"ici_parallelism": {"fsdp": 4}', '"ici_parallelism": {"fsdp": 1}')
    (tmp_path / "example.py").write_text(text)
    environment = plain_environment(
        docker_environment, ORBAX_BENCH_IMAGE=image, PYTHONPATH=str(tmp_path)
    )
    del environment["JAX_PLATFORMS"]

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=550,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_the_example_runs_in_containers_of_the_callers_user(own, tmp_path):
    code, said = own("example.py", str(tmp_path / "bench"), "--docker")
    assert code == 0, said
    assert "Fastest: " in said
    report = tmp_path / "bench" / "report.html"
    assert report.stat().st_uid == os.getuid()


@pytest.mark.parametrize("named", [True, False])
def test_kfps_own_runner_needs_the_user_that_the_page_gives_it(own, tmp_path, named):
    folder = tmp_path / "bench"
    folder.mkdir()
    (tmp_path / "plain.py").write_text(PLAIN.format(folder=folder, named=named))
    code, said = own("plain.py")
    if named:
        assert code == 0, said
        assert (folder / "report.html").exists()
    else:
        assert code != 0
        assert "Permission" in said
