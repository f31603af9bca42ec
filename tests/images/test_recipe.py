"""Content of the Dockerfiles."""

import json
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


@pytest.mark.parametrize("feature", ["# syntax=", "--mount=", "<<", "--link", "--chmod="])
def test_the_legacy_builder_understands_it(recipe, feature):
    assert feature not in recipe


def test_the_base_is_an_argument(recipe):
    assert set(instructions(recipe, "FROM")) <= {"${BASE_IMAGE} AS build", "${BASE_IMAGE}"}


@pytest.mark.parametrize(
    "name",
    ["version", "revision", "source", "title", "licenses", "created", "base.name", "base.digest"],
)
def test_the_image_is_labelled(recipe, name):
    assert any(
        f"org.opencontainers.image.{name}=" in label for label in instructions(recipe, "LABEL")
    )


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


def test_every_target_builds_from_a_recipe_that_is_there():
    targets = json.loads((ROOT / "images/docker-bake.json").read_text())["target"]
    recipes = {ROOT / target["dockerfile"] for target in targets.values() if "dockerfile" in target}
    assert recipes == set(RECIPES)


def test_the_root_recipe_takes_extras():
    assert "EXTRAS=gcs,kubernetes" in instructions(RECIPES[0].read_text(), "ARG")
