"""Rules of the validators of kubeflow/pipelines-components, as of fab64a9 of 23 July 2026.

Their scripts are `check_imports`, `validate_base_images`, `validate_metadata`, `generate_readme`
and `compile_check`; metadata and READMEs are in `test_components`.
"""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("kfp")

from orbax_bench_components import compile as compiling
from orbax_bench_components.image import RELEASED

FOLDER = Path(compiling.__file__).parent
DEFINED = sorted(FOLDER.glob("*/component.py"))
ALLOWED = {"kfp", "pytest"}
"""Modules that are no part of Python and may be imported at top level."""
IMAGES = (re.compile(r"^ghcr\.io/kubeflow/.*$"), re.compile(r"^python:\d+\.\d+.*$"))
"""What their list of base images allows."""
YAMLLINT = """
extends: default
rules:
  line-length: {max: 120, level: warning}
  truthy: {level: warning}
"""
"""Their `.yamllint.yml`, which exempts truthy values of workflows too; there are none here."""


def imported(node):
    """Yields the modules that a file imports as it is loaded, by their rule.

    Relative imports do not count, nor does what is inside of functions and classes.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            yield child.module.partition(".")[0]
        else:
            yield from imported(child)


def others(text):
    return set(imported(ast.parse(text))) - set(sys.stdlib_module_names) - ALLOWED


@pytest.mark.parametrize("file", DEFINED, ids=lambda file: file.parent.name)
def test_where_a_component_is_defined_python_and_kfp_alone_are_imported(file):
    assert others(file.read_text()) == set()
    assert others((file.parent / "__init__.py").read_text()) == set()


LOADED = """
import importlib.util, sys
from kfp import compiler
for file in sys.argv[2:]:
    name = file.split("/")[-2]
    spec = importlib.util.spec_from_file_location("asset", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    component = getattr(module, name)
    compiler.Compiler().compile(component, sys.argv[1])
    ours = {"orbax_bench_core", "orbax_bench_components", "jax"} & sys.modules.keys()
    print(name, component.component_spec.implementation.container.image, *ours)
"""


def test_a_component_is_loaded_by_its_path_as_their_compile_check_does(tmp_path):
    environment = os.environ | {"ORBAX_BENCH_IMAGE": RELEASED}
    command = [sys.executable, "-c", LOADED, str(tmp_path / "component.yaml"), *map(str, DEFINED)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{file.parent.name} {RELEASED}" for file in DEFINED]
    assert any(pattern.match(RELEASED) for pattern in IMAGES)


def images_in(file):
    executors = yaml.safe_load(file.read_text())["deploymentSpec"]["executors"]
    return [each["container"]["image"] for each in executors.values()]


@pytest.mark.parametrize(
    "file", sorted(FOLDER.glob("*/component.yaml")), ids=lambda file: file.parent.name
)
def test_a_committed_component_names_a_released_image_of_a_registry(file):
    assert images_in(file) == [RELEASED]
    version = importlib.metadata.version("orbax-bench")
    assert re.fullmatch(rf"\w+(\.\w+)+/[\w/-]+:v{re.escape(version)}", RELEASED)


def test_folders_are_named_as_their_components():
    names = {component.name.replace("-", "_") for component in compiling.COMPONENTS}
    assert {file.parent.name for file in FOLDER.glob("*/component.yaml")} == names
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)


def written(tmp_path, image):
    command = [sys.executable, "-m", "orbax_bench_components.compile", str(tmp_path / "out")]
    environment = os.environ | {"ORBAX_BENCH_IMAGE": image}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_components_for_others_name_an_image_that_they_can_pull(tmp_path):
    image = "europe-docker.pkg.dev/p/bench/orbax-bench@sha256:" + "0" * 64
    done = written(tmp_path, image)
    assert done.returncode == 0, done.stderr
    files = list((tmp_path / "out").glob("*/component.yaml"))
    assert len(files) == len(compiling.COMPONENTS)
    for file in files:
        assert images_in(file) == [image]


def test_an_image_that_others_cannot_pull_is_refused(tmp_path):
    image = "ghcr.io/me/orbax-bench:latest"
    done = written(tmp_path, image)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: ORBAX_BENCH_IMAGE: {image!r} is no image that others")
    assert not (tmp_path / "out").exists()


def linted(files, tmp_path):
    rules = tmp_path / "yamllint.yml"
    rules.write_text(YAMLLINT)
    command = [sys.executable, "-m", "yamllint", "-c", rules, *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_yamllint_finds_nothing_in_what_they_keep(tmp_path):
    """All but `component.yaml`, which their `.gitignore` names; kfp indents it in its own way."""
    kept = {*FOLDER.rglob("*.yaml"), *FOLDER.rglob("*.yml")} - {*FOLDER.glob("*/component.yaml")}
    assert {file.parent for file in kept} == {file.parent for file in FOLDER.glob("*/__init__.py")}
    done = linted(sorted(kept), tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("---\na:\n- b\nc:\n  - d\n")
    assert "wrong indentation" in linted([wrong], tmp_path).stdout


def test_lines_of_readmes_are_as_their_linter_wants():
    """`.markdownlint.json` there: lines of 300 characters, headings of 120; tables are free."""
    for file in [FOLDER / "README.md", *FOLDER.glob("*/README.md")]:
        lines = file.read_text().splitlines()
        assert lines[0].startswith("# ")
        long = [line for line in lines if len(line) > 300 and not line.startswith("|")]
        assert long == [], file
        # MD052: outside of code, [this][that] is a link.
        assert "][" not in re.sub(r"`[^`]*`|```.*?```", "", file.read_text(), flags=re.DOTALL), file


def test_ruff_finds_nothing_by_their_rules():
    """Except for what their `make format` does: longer lines, and the order of imports."""
    rules = ["--select=E,W,F,D", "--ignore=D100,D104,D415", "--line-length=120"]
    style = ["--isolated", "--config=lint.pydocstyle.convention='google'"]
    folders = {file.parent for file in DEFINED}
    command = [sys.executable, "-m", "ruff", "check", *rules, *style, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
