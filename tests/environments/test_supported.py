"""The list of what a worker needs is what its modules import, and what the package asks for."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import orbax_bench_core
from orbax_bench_core.environments import OLDEST_ORBAX
from orbax_bench_core.environments.supported import OLDEST_JAX, WORKER_MODULES, WORKER_REQUIREMENTS

ROOT = Path(orbax_bench_core.__file__).parent
# The worker imports the package's own modules from these on; what they import in turn is followed.
ENTRIES = (
    "orbax_bench_core.worker.__main__",
    "orbax_bench_core.benchmarks.save_restore",
    "orbax_bench_core.benchmarks.interference",
    *(
        f"orbax_bench_core.measure.collectors.{path.stem}"
        for path in (ROOT / "measure" / "collectors").glob("*.py")
    ),
)
# What comes with every Orbax, JAX and pydantic, and what a suite asks for by what it measures.
ALONG = {"pydantic_core", "tensorstore", "typing_extensions"}
ON_REQUEST = {"flax", "pathwaysutils"}


@pytest.mark.slow
def test_everything_that_the_worker_imports_is_required():
    required = {module.split(".")[0] for module in WORKER_MODULES} | ALONG | ON_REQUEST
    missing = {name: places for name, places in _imports().items() if name not in required}
    assert missing == {}


@pytest.mark.slow
def test_nothing_is_required_in_vain():
    assert {module.split(".")[0] for module in WORKER_MODULES} - {ROOT.name} <= _imports().keys()


def test_modules_and_requirements_say_the_same():
    names = {canonicalize_name(Requirement(text).name) for text in WORKER_REQUIREMENTS}
    assert names == set(WORKER_MODULES.values()) - {"orbax-bench"}


def test_no_requirement_has_an_upper_bound_and_orbax_and_jax_none_at_all():
    operators = {
        one.operator for text in WORKER_REQUIREMENTS for one in Requirement(text).specifier
    }
    assert operators <= {">="}
    assert {"jax", "orbax-checkpoint"} <= set(WORKER_REQUIREMENTS)


def test_the_oldest_releases_are_older_than_what_this_package_is_installed_with():
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]
    own = {one.name: one for one in map(Requirement, project["dependencies"])}
    assert not own["orbax-checkpoint"].specifier.contains(OLDEST_ORBAX)
    assert not own["jax"].specifier.contains(OLDEST_JAX)


def _imports():
    """Third-party packages that the worker's modules import at module level, and by which ones.

    Modules of its own that a function imports are followed too: the worker imports lazily.
    """
    found, seen, queue = {}, set(), list(ENTRIES)
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        path = _path(name)
        if path is None:
            continue
        queue.append(name.rpartition(".")[0])
        for module, top_level in _imported(ast.parse(path.read_text())):
            first = module.split(".")[0]
            if first == ROOT.name:
                queue.append(module)
            elif first not in sys.stdlib_module_names and (top_level or _is_measuring(name)):
                found.setdefault(first, set()).add(name)
    return found


def _is_measuring(name):
    """Whether even a function's imports happen in the worker: those of other modules need not."""
    return name.split(".")[1:2] in (["measure"], ["state"], ["benchmarks"])


def _path(name):
    base = ROOT.parent.joinpath(*name.split("."))
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _imported(tree):
    """Yields each module that is imported at run time, and whether that is at module level."""
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        top_level = node in tree.body
        if isinstance(node, ast.Import):
            yield from ((alias.name, top_level) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, top_level
            for alias in node.names:
                if node.module.startswith(ROOT.name):
                    yield f"{node.module}.{alias.name}", top_level
