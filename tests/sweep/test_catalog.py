"""Built-in benchmarks by name."""

import pytest

from orbax_bench_core.sweep import catalog

ORBAX = "orbax.checkpoint._src.testing.benchmarks."
OURS = "orbax_bench_core.benchmarks.save_restore.SaveRestore"


@pytest.mark.parametrize(
    ("generator", "path"),
    [
        ("save_restore", OURS),
        (ORBAX + "v1.benchmark.Benchmark", OURS),
        (ORBAX + "deleter_benchmark.DeleterBenchmark", None),
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
    from orbax_bench_core.sweep.load_class import load_class

    assert catalog.is_builtin(path)
    assert load_class(path).__name__ == path.rpartition(".")[2]


def test_a_class_of_ones_own_is_no_built_in():
    assert not catalog.is_builtin("my.module.Bench")
