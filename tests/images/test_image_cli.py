import shlex
from pathlib import Path

import pytest
import typer.testing

from orbax_bench_core.config import UserError
from orbax_bench_pipelines.images import app

ROOT = Path(__file__).parents[2]


def image_build(*arguments):
    return typer.testing.CliRunner().invoke(app, ["build", "--context", str(ROOT), *arguments])


def test_prints_the_command_and_runs_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # no docker here
    done = image_build("--variant", "cuda")
    assert done.exit_code == 0, done.output
    [line] = done.output.splitlines()
    command = shlex.split(line)
    assert command[:2] == ["docker", "build"]
    assert "EXTRAS=gcs,cuda" in command
    assert command[-1] == str(ROOT)


def test_prints_the_push_too():
    done = image_build("--push", "--tag", "host/project/image:1")
    assert done.output.splitlines()[1] == "docker push host/project/image:1"


def test_without_docker_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = image_build("--run")
    assert isinstance(done.exception, UserError)
    assert "apt-get install docker.io" in str(done.exception)


def test_without_an_engine_it_says_how_to_start_one(monkeypatch, tmp_path):
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = image_build("--run")
    assert "Cannot connect to the Docker daemon; start one" in str(done.exception)


@pytest.mark.parametrize("variant", ["cpu", "tpu", "cuda", "pathways", "pathways-sidecar"])
def test_the_help_names_every_variant(variant):
    assert variant in typer.testing.CliRunner().invoke(app, ["build", "--help"]).output
