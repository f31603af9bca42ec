"""Built-in benchmarks by name."""

import ast
import dataclasses
import importlib.util
from pathlib import Path

import pytest

from orbax_bench_core.sweep import catalog

ORBAX = "orbax.checkpoint._src.testing.benchmarks."
OURS = "orbax_bench_core.benchmarks.save_restore.SaveRestore"


@pytest.mark.parametrize(
    ("generator", "benchmark"),
    [
        ("save_restore", "save_restore"),
        (OURS, "save_restore"),
        ("orbax_bench_core.benchmarks.cancel.V0Cancel", "v0_cancel"),
        ("orbax_bench_core.benchmarks.v0_cancel.V0Cancel", "v0_cancel"),
        (ORBAX + "v1.benchmark.Benchmark", "save_restore"),
        (ORBAX + "pytorch_checkpoint_benchmark.PyTorchCheckpointBenchmark", "pytorch_dcp"),
        ("my.module.Bench", "my.module.Bench"),
        ("unknown", "unknown"),
    ],
)
def test_a_generator_names_a_built_in_or_a_class(generator, benchmark):
    assert catalog.benchmark_of(generator) == benchmark


def upstream_classes():
    """Yields the path and the options class of every benchmark in Orbax's own framework.

    Its modules are read, not imported: they need packages that we do without.
    """
    (folder,) = importlib.util.find_spec(ORBAX.rstrip(".")).submodule_search_locations
    for file in sorted(Path(folder).rglob("*.py")):
        module = ORBAX + ".".join(file.relative_to(folder).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ClassDef):
                continue
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and "benchmark_options" in ast.unparse(
                    decorator.func
                ):
                    yield f"{module}.{node.name}", ast.unparse(decorator.args[0]), file


UPSTREAM = list(upstream_classes())


@pytest.mark.parametrize("path", [path for path, *_ in UPSTREAM])
def test_every_benchmark_of_orbaxs_framework_is_built_in(path):
    assert catalog.is_builtin(catalog.benchmark_of(path))


@pytest.mark.parametrize(("path", "options", "file"), UPSTREAM, ids=[path for path, *_ in UPSTREAM])
def test_every_option_of_orbaxs_framework_is_taken(path, options, file):
    from orbax_bench_core.sweep.catalog import load_class, options_class

    (node,) = (
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and node.name == options
    )
    upstream = {field.target.id for field in node.body if isinstance(field, ast.AnnAssign)}
    ours = options_class(load_class(catalog.benchmark_of(path)))
    assert upstream <= {field.name for field in dataclasses.fields(ours)}
