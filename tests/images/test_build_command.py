"""Build of an image: what buildx is told, or `docker build`, and what the image says of itself."""

import importlib.util
import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.repositories import git, repository  # noqa: F401 - fixtures

ROOT = Path(__file__).parents[2]
BAKE = json.loads((ROOT / "images/docker-bake.json").read_text())
DIGEST = f"sha256:{'0a' * 32}"


def load(name):
    spec = importlib.util.spec_from_file_location(f"images_{name}", ROOT / "images" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


images = load("build")
VERSION = images.described(ROOT)["VERSION"]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in (*images.INDEX_SETTINGS, *BAKE["variable"], "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)


def command(*, digest="", **wanted):
    asked = images.Wanted(**wanted)
    values = images.variables(asked, BAKE, ROOT, digest)
    return images.build_command(asked, BAKE, values, ROOT)


def arguments(words):
    """Build arguments of a command."""
    given = [after for before, after in itertools.pairwise(words) if before == "--build-arg"]
    return dict(each.partition("=")[::2] for each in given)


def test_the_index_of_a_site_is_handed_on_without_being_shown(monkeypatch, capsys, docker_with):
    monkeypatch.setenv("UV_INDEX", "https://user:secret@index.example/simple")
    assert "UV_INDEX" in arguments(command())
    assert "secret" not in "".join(command())
    told = json.loads(images.index_arguments("cpu"))
    assert "secret" in told["target"]["cpu"]["args"]["UV_INDEX"]
    for buildx in (True, False):
        docker_with(buildx=buildx)
        assert images.main(["--dry-run"]) == 0
    assert "secret" not in capsys.readouterr().out


def test_what_cannot_be_built_is_one_message(capsys, docker_with):
    docker_with(buildx=False)
    assert images.main(["cda", "--dry-run"]) == 2
    assert "there is no target 'cda'; there are cpu, tpu, cuda" in capsys.readouterr().err


def test_the_sidecar_and_its_client_have_one_python_and_one_jax():
    sidecar = arguments(command(target="pathways-sidecar"))["BASE_IMAGE"]
    client = arguments(command(target="pathways"))
    python, jax = re.search(r"python_([\d.]+)-jax_([\d.]+)$", sidecar).groups()
    assert client["BASE_IMAGE"].startswith(f"python:{python}-")
    assert client["SIDECAR_JAX"]
    pins = (ROOT / "images/pathways-sidecar/jax.txt").read_text()
    assert re.findall(r"^(jax\w*)==(\S+)", pins, re.MULTILINE) == [("jax", jax), ("jaxlib", jax)]


@pytest.fixture
def docker_with(monkeypatch, tmp_path):
    """Puts a stand-in for docker first on the path; returns what it was called with."""

    def put(*, buildx, engine=True, pulls=True):
        client = tmp_path / "docker"
        client.write_text(
            f"""#!/bin/sh
echo "$@ VERSION=$VERSION BASE_IMAGE=$BASE_IMAGE" >> "{tmp_path}/called"
reached() {{ [ {int(pulls)} = 1 ] || {{ echo 'no such host' >&2; return 1; }}; }}
case "$1 $2" in
  "buildx version") exit {int(not buildx)};;
  "buildx bake") cat > "{tmp_path}/given"; exit {int(not pulls)};;
  "buildx imagetools") reached && echo {DIGEST};;
  "version --format") [ {int(engine)} = 1 ] || {{ echo 'Cannot connect' >&2; exit 1; }};;
  "image inspect") reached 2> /dev/null && [ "$3" = --format ] && echo "base@{DIGEST}" || exit 1;;
  "pull "*) reached;;
esac
"""
        )
        client.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

        def called(what):
            lines = (tmp_path / "called").read_text().splitlines()
            return [line for line in lines if line.startswith(what)]

        return called

    return put


def test_buildx_bakes_from_the_file_with_variables_in_its_environment(docker_with, tmp_path):
    called = docker_with(buildx=True)
    assert images.main(["tpu", "--tag", "h/p:1", "--platform", "linux/amd64", "--push"]) == 0
    [line] = called("buildx bake")
    assert "--set=tpu.tags=h/p:1 --set=tpu.platform=linux/amd64 --push tpu" in line
    assert f"VERSION={VERSION} BASE_IMAGE=python:" in line
    assert json.loads((tmp_path / "given").read_text()) == {"target": {"tpu": {"args": {}}}}
    assert called("build ") == []


def readme_commands():
    text = (ROOT / "images/README.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    return [words[2:] for words in lines if words[:2] == ["python", "images/build.py"]]


@pytest.mark.parametrize("words", readme_commands(), ids=" ".join)
def test_the_commands_of_the_readme_build(docker_with, words):
    called = docker_with(buildx=True)
    assert images.main(words) == 0
    assert len(called("buildx bake")) == ("--dry-run" not in words)


def test_without_buildx_the_engine_builds_and_pushes(docker_with):
    called = docker_with(buildx=False)
    assert images.main(["--tag", "h/p:1", "--push"]) == 0
    [line] = called("build ")
    assert f"BASE_DIGEST={DIGEST}" in line
    assert len(called("push h/p:1")) == 1


@pytest.mark.parametrize("buildx", [True, False])
@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"engine": False}, "docker cannot reach an engine: Cannot connect; start one"),
        ({"pulls": False}, "cannot pull the base image python:3.11-slim-bookworm: no such host"),
    ],
)
def test_an_engine_that_cannot_is_one_message(docker_with, capsys, engine, said, buildx):
    docker_with(buildx=buildx, **engine)
    assert images.main([]) == 2
    assert said in capsys.readouterr().err


def test_without_docker_it_says_what_to_install_and_prints_all_the_same(
    monkeypatch, tmp_path, capsys
):
    (tmp_path / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert images.main([]) == 2
    assert "apt-get install docker.io" in capsys.readouterr().err
    assert images.main(["--dry-run"]) == 0
    assert "docker build --tag" in capsys.readouterr().out


@pytest.fixture
def project(git, repository):
    """A git repository with a project in it."""
    (repository / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "7.1"\n')
    git("add", ".")
    git("commit", "-m", "x")
    git("remote", "add", "origin", "https://user:secret@git.example:8443/x.git")
    return repository


def test_a_revision_is_the_commit_unless_something_was_changed(project, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    found = images.described(project)
    assert len(found["REVISION"]) == 40
    assert found["VERSION"] == "7.1"
    assert found["SOURCE"] == "https://git.example:8443/x"
    assert found["CREATED"] == "1970-01-01T00:00:00Z"
    (project / "more").touch()
    assert images.described(project)["REVISION"].endswith("-dirty")
