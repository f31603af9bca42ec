"""The lock holds what every variant installs, and nothing for developers gets into an image."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {
    name: target["args"]["EXTRAS"].split(",")
    for name, target in json.loads((ROOT / "images/docker-bake.json").read_text())["target"].items()
    if "EXTRAS" in target["args"]
}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements):
    return {canonical(re.match(r"[\w.-]+", one).group()) for one in requirements}


def asked_by(variant):
    extras = (PROJECT["optional-dependencies"][extra] for extra in EXTRAS[variant])
    return {*PROJECT["dependencies"], *(one for extra in extras for one in extra)}


@pytest.fixture(scope="module")
def lock():
    """Pins of the lock: name and version."""
    text = (ROOT / "requirements.lock").read_text()
    return {(canonical(n), v) for n, v in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}


@pytest.mark.parametrize("variant", EXTRAS)
def test_what_a_variant_asks_for_is_locked(variant, lock):
    assert names(asked_by(variant)) <= {name for name, _ in lock}, "run `make lock`"


def test_what_is_left_out_would_else_be_there(lock):
    lines = (ROOT / "images/unused.txt").read_text().splitlines()
    left_out = {line for line in lines if not line.startswith("#")}
    assert left_out <= {name for name, _ in lock}


CLIENTS = {"kubernetes": "kubernetes", "google.cloud": "google-cloud-aiplatform"}
IMPORT = re.compile(rf"^ +(?:from|import) ({'|'.join(CLIENTS)})\b", re.MULTILINE)


@pytest.mark.parametrize(
    ("variant", "client"),
    [(variant, "kubernetes") for variant in EXTRAS] + [("tpu", "vertex"), ("cuda", "vertex")],
)
def test_a_variant_has_what_a_step_that_launches_imports(variant, client):
    imported = IMPORT.findall((ROOT / f"orbax_bench_core/launchers/{client}.py").read_text())
    assert imported
    assert {CLIENTS[module] for module in imported} <= names(asked_by(variant))


@pytest.mark.nightly
@pytest.mark.parametrize("variant", EXTRAS)
def test_a_variant_resolves_to_what_is_locked(variant, lock, tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--require-hashes"),
            *("--python", sys.executable, "--target", tmp_path / "target"),
            *("--constraints", ROOT / "requirements.lock"),
            *("--excludes", ROOT / "images/unused.txt", "--requirements", ROOT / "pyproject.toml"),
            *(part for extra in EXTRAS[variant] for part in ("--extra", extra)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run `make lock`: {done.stderr}"
    found = {(canonical(n), v) for n, v in re.findall(r"^ \+ ([\w.-]+)==(\S+)", done.stderr, re.M)}
    assert found
    assert found - lock == set()
    development = names(PROJECT["optional-dependencies"]["dev"]) - names(asked_by(variant))
    assert {name for name, _ in found} & development == set()
