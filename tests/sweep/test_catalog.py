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
    ("generator", "path"),
    [
        ("save_restore", OURS),
        (ORBAX + "v1.benchmark.Benchmark", OURS),
        (
            ORBAX + "deleter_benchmark.DeleterBenchmark",
            "orbax_bench_core.benchmarks.deleter.Deleter",
        ),
        (
            ORBAX + "pytorch_checkpoint_benchmark.PyTorchCheckpointBenchmark",
            "orbax_bench_core.benchmarks.pytorch_dcp.PyTorchDcp",
        ),
        ("my.module.Bench", "my.module.Bench"),
        ("unknown", "unknown"),
    ],
)
def test_a_generator_has_the_path_of_a_class(generator, path):
    assert catalog.class_path(generator) == path


@pytest.mark.parametrize(("path", "name"), [(OURS, "save_restore"), ("my.module.Bench", "Bench")])
def test_a_class_has_a_short_name(path, name):
    assert catalog.short_name(path) == name


@pytest.mark.parametrize("path", catalog.BUILTINS.values())
def test_a_built_in_can_be_loaded(path):
    from orbax_bench_core.sweep.classes import load_class

    assert catalog.is_builtin(path)
    assert load_class(path).__name__ == path.rpartition(".")[2]


def test_a_class_of_ones_own_is_no_built_in():
    assert not catalog.is_builtin("my.module.Bench")


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


def test_upstream_has_the_benchmarks_that_we_know():
    assert len(UPSTREAM) == 21


@pytest.mark.parametrize("path", [path for path, *_ in UPSTREAM])
def test_every_benchmark_of_orbaxs_framework_is_built_in(path):
    assert catalog.is_builtin(catalog.class_path(path))


@pytest.mark.parametrize(("path", "options", "file"), UPSTREAM, ids=[path for path, *_ in UPSTREAM])
def test_every_option_of_orbaxs_framework_is_taken(path, options, file):
    from orbax_bench_core.sweep.classes import load_class, options_class

    (node,) = (
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and node.name == options
    )
    upstream = {field.target.id for field in node.body if isinstance(field, ast.AnnAssign)}
    ours = options_class(load_class(catalog.class_path(path)))
    assert upstream <= {field.name for field in dataclasses.fields(ours)}
