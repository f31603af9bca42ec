import jax
import pytest

from orbax_bench_core.state import jax_api


@pytest.mark.parametrize(
    "tree", [{"a": {"b": [1, 2]}}, {"a": (1, {"b.c": 2})}, 3, [jax.tree_util.Partial(max, 1)]]
)
def test_leaves_are_named_as_jax_names_them(tree):
    for path, _ in jax.tree_util.tree_leaves_with_path(tree):
        expected = jax.tree_util.keystr(path, simple=True, separator=".")
        assert jax_api.leaf_name(path) == expected


def test_64_bit_types_are_there_in_the_context_only():
    with jax.enable_x64(False):
        with jax_api.enable_x64():
            assert jax.numpy.arange(2.0).dtype == "float64"
        assert jax.numpy.arange(2.0).dtype == "float32"
