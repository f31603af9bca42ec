"""Content of the Dockerfiles."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = [ROOT / "Dockerfile", *sorted(ROOT.glob("images/*/Dockerfile"))]


@pytest.fixture(params=RECIPES, ids=lambda path: str(path.relative_to(ROOT)))
def recipe(request):
    return request.param.read_text()


def instructions(recipe, name):
    return re.findall(rf"^{name} +(.*(?:\\\n.*)*)$", recipe.replace("\\\n", " "), re.MULTILINE)


def test_kubeflow_gives_the_whole_command(recipe):
    assert not instructions(recipe, "ENTRYPOINT")


def test_everything_is_installed_with_its_hash(recipe):
    commands = " ".join(instructions(recipe, "RUN")).split("&&")
    installs = [command for command in commands if "pip install" in command]
    own = [one for one in installs if " . " in f"{one} "]
    assert len(own) == 1
    assert "--no-deps" in own[0]
    assert "--build-constraints requirements.lock" in own[0]
    assert all("--require-hashes" in one for one in installs if one not in own)


def test_what_a_site_hands_to_the_build_stays_out_of_the_image(recipe):
    image = recipe.rpartition("FROM ${BASE_IMAGE}\n")[2]
    assert "INDEX" not in image


def test_processes_know_the_base_that_the_label_names():
    recipe = (ROOT / "Dockerfile").read_text()
    assert (
        'org.opencontainers.image.base.digest="${BASE_DIGEST}"' in instructions(recipe, "LABEL")[0]
    )
    told = " ".join(instructions(recipe.rpartition("ARG BASE_DIGEST")[2], "ENV")).split()
    assert "ORBAX_BENCH_BASE_DIGEST=${BASE_DIGEST}" in told


def test_what_is_copied_is_let_through(recipe):
    let_through = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [
        source
        for line in instructions(recipe, "COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    ]
    assert copied
    assert [source for source in copied if f"!{source}" not in let_through] == []
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_no_file_names_a_package_index():
    files = [ROOT / ".dockerignore", *RECIPES]
    found = [path for path in (ROOT / "images").rglob("*") if path.is_file()]
    files += [path for path in found if path.suffix != ".pyc"]
    named = [
        path for path in files if re.search(r"index-url\s*=|https?://[^/\s]*pypi", path.read_text())
    ]
    assert named == []
