import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from orbax_bench_core.config import UserError
from orbax_bench_pipelines import images

ROOT = Path(__file__).parents[2]
VERSION = images.revision_of(ROOT)["VERSION"]


@pytest.fixture(autouse=True)
def _no_index_settings(monkeypatch):
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)


def arguments(command):
    """Build arguments of a command."""
    return [after for before, after in itertools.pairwise(command) if before == "--build-arg"]


@pytest.mark.parametrize("variant", images.variants(ROOT))
def test_every_variant_has_its_own_tag(variant):
    suffix = "" if variant == "cpu" else f"-{variant}"
    image = images.describe(ROOT, variant, base_image="base")
    assert image.tag == f"orbax-bench:{VERSION}{suffix}"


def test_the_extras_of_a_variant_are_handed_over():
    command = images.build_command(images.describe(ROOT, "tpu"), ROOT)
    assert "EXTRAS=gcs,tpu,launch" in arguments(command)


def test_version_and_revision_are_handed_over():
    given = arguments(images.build_command(images.describe(ROOT, "cpu"), ROOT))
    assert f"VERSION={VERSION}" in given
    assert any(one.startswith("REVISION=") for one in given)


def test_another_base_and_tag_can_be_named():
    image = images.describe(ROOT, "cpu", base_image="mine:1", tag="host/mine:2")
    command = images.build_command(image, ROOT)
    assert "BASE_IMAGE=mine:1" in arguments(command)
    assert command[:4] == ["docker", "build", "--tag", "host/mine:2"]
    assert images.push_command(image) == ["docker", "push", "host/mine:2"]


def test_the_index_of_a_site_is_named_but_not_shown(monkeypatch):
    monkeypatch.setenv("UV_INDEX", "https://user:secret@index.example/simple")
    command = images.build_command(images.describe(ROOT, "cpu"), ROOT)
    assert "UV_INDEX" in arguments(command)
    assert not any("secret" in part for part in command)


def test_an_unknown_variant_names_the_nearest():
    with pytest.raises(UserError, match=r"unknown variant 'cda'; did you mean 'cuda'"):
        images.describe(ROOT, "cda")


def test_a_sidecar_needs_a_base():
    with pytest.raises(UserError, match="no usual base image; name one with --base-image"):
        images.describe(ROOT, "pathways-sidecar")


def test_the_checkout_is_found_from_below():
    assert images.find_checkout(ROOT / "tests" / "images") == ROOT


def test_outside_a_checkout_it_says_so(tmp_path):
    with pytest.raises(UserError, match="no checkout of orbax-bench holds"):
        images.find_checkout(tmp_path)


@pytest.fixture
def repository(tmp_path):
    """A git repository with a project in it."""

    def git(*arguments):
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.com")
        subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True
        )

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "7.1"\n')
    git("init")
    git("add", ".")
    git("commit", "-m", "x")
    git("remote", "add", "origin", "https://user:secret@git.example:8443/x.git")
    return tmp_path


def test_a_revision_is_the_commit(repository):
    found = images.revision_of(repository)
    assert len(found["REVISION"]) == 40
    assert found["VERSION"] == "7.1"


def test_a_changed_checkout_is_no_revision(repository):
    (repository / "more").touch()
    assert images.revision_of(repository)["REVISION"].endswith("-dirty")


def test_credentials_stay_out_of_the_source_label(repository):
    assert images.revision_of(repository)["SOURCE"] == "https://git.example:8443/x.git"


def test_what_git_does_not_know_is_unknown(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n')
    found = images.revision_of(tmp_path)
    assert (found["REVISION"], found["SOURCE"]) == ("unknown", "unknown")
