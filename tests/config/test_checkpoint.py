"""The `checkpoint_config` block."""

import jax.numpy as jnp
import pytest

from orbax_bench_core.config import canonical
from orbax_bench_core.config.checkpoint import CheckpointConfig
from orbax_bench_core.config.spec import ArraySpec, leaves


@pytest.mark.parametrize(
    ("lines", "line", "key", "message"),
    [
        ("  spc: {}\n", 5, "spc", "unknown key; did you mean 'spec'?"),
        ("  random_seed: -1\n", 5, "random_seed", "expected greater than or equal to 0, got -1"),
        ("  path: 3\n", 5, "path", "expected text, got 3; quote it"),
        (
            "  load_with_colocated_python: 'yes'\n",
            5,
            "load_with_colocated_python",
            "expected true or false, got 'yes'",
        ),
        ("  spec: 3\n", 5, "spec", "a spec is a mapping of names to leaves, got 3"),
        (
            "  spec:\n    a: float\n",
            6,
            "spec.a",
            "a leaf is `int`, `str` or a mapping with `dtype` and `shape`, got 'float'",
        ),
        (
            "  spec:\n    a:\n      b: 1.5\n",
            7,
            "spec.a.b",
            "a leaf is `int`, `str` or a mapping with `dtype` and `shape`, got 1.5",
        ),
        ("  spec:\n    a: {dtype: int8}\n", 6, "spec.a.shape", "this key is required"),
        ("  spec:\n    a: {shape: [1]}\n", 6, "spec.a.dtype", "this key is required"),
        (
            "  spec:\n    a: {dtype: int8, shape: 4}\n",
            6,
            "spec.a.shape",
            "expected a list, got 4; write [4]",
        ),
        (
            "  spec:\n    a: {dtype: int8, shape: [true]}\n",
            6,
            "spec.a.shape[0]",
            "expected a whole number, got true",
        ),
        (
            "  spec:\n    a:\n      dtype: int8\n      shape: [1]\n      shardin: [x]\n",
            9,
            "spec.a.shardin",
            "unknown key; did you mean 'sharding'?",
        ),
        (
            "  spec:\n    a: {dtype: int8, shape: [1], sharding: x}\n",
            6,
            "spec.a.sharding",
            "expected a list, got 'x'; write [x]",
        ),
        (
            "  spec:\n    a: {dtype: int8, shape: [1], sharding: [null, null]}\n",
            6,
            "spec.a",
            "sharding has 2 entries for 1 dimensions",
        ),
        ("  model: gpt2\n  scale: 0\n", 6, "scale", "expected greater than 0, got 0"),
        ("  model: gpt2\n  scale: 2\n", 6, "scale", "expected less than or equal to 1, got 2"),
        (
            "  model: gpt2\n  optimizer: adam\n",
            6,
            "optimizer",
            "expected 'adamw', 'sgd' or 'none', got 'adam'",
        ),
        (
            "  model: gpt2\n  dtypes: {parms: float32}\n",
            6,
            "dtypes",
            "unknown group 'parms'; did you mean 'params'?",
        ),
        (
            "  model: gpt2\n  dtypes: {params: bf16}\n",
            6,
            "dtypes",
            "unknown dtype 'bf16'; did you mean 'bfloat16'?",
        ),
        (
            "  nnx: my_module\n",
            5,
            "nnx",
            "expected module:factory, such as my_package.models:make, got 'my_module'",
        ),
    ],
)
def test_a_bad_checkpoint_is_named_at_its_line(only_problem, lines, line, key, message):
    problem = only_problem(f"checkpoint_config:\n{lines}")
    assert (problem.line, problem.key) == (line, f"checkpoint_config.{key}")
    assert problem.message == message


@pytest.mark.parametrize(
    "name", ["/etc/x", "x/y", "..", ".", "''", r"a\b", r'"a\tb"', r'"a\nb"', r'"\u200b"']
)
def test_a_name_in_a_spec_is_the_name_of_no_other_place(only_problem, name):
    lines = f"checkpoint_config:\n  spec:\n    a:\n      {name}: {{dtype: int8, shape: [1]}}\n"
    problem = only_problem(lines)
    assert problem.line == 7
    assert "is not the name of an array: give one without / and \\ and control" in problem.message


@pytest.mark.parametrize("key", ["path", "sharding_config_path"])
def test_a_path_that_orbax_would_misread_is_refused(only_problem, key):
    problem = only_problem(f"checkpoint_configs:\n- path: /a\n- {key}: s3://bucket/dir\n")
    assert (problem.line, problem.key) == (6, f"checkpoint_configs[1].{key}")
    assert "would put s3:// data into a local folder" in problem.message


def test_a_path_is_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CheckpointConfig(path="ckpt").path == str(tmp_path / "ckpt")


def test_a_spec_may_be_nested_and_its_leaves_keep_the_order_of_the_file():
    spec = CheckpointConfig(
        spec={
            "z": {"b": "int", "a": {"dtype": "int8", "shape": []}},
            "a": {"dtype": "int4", "shape": [2]},
        }
    ).spec
    assert [where for where, _ in leaves(spec)] == [("z", "b"), ("z", "a"), ("a",)]


@pytest.mark.parametrize(
    ("dtype", "shape", "num_bytes"),
    [("bfloat16", [8, 4], 64), ("float64", [], 8), ("int4", [3], 3), ("float32", [0, 4], 0)],
)
def test_an_array_has_the_bytes_of_its_elements(dtype, shape, num_bytes):
    assert ArraySpec(dtype=dtype, shape=shape).num_bytes == num_bytes


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("  path: /a\n  spec: {}\n", "give either `path` (load) or `spec` (generate), not both"),
        ("  sharding_config_path: /a\n", "`sharding_config_path` needs `path`"),
        ("  spec: {}\n  model: gpt2\n", "`spec` and `model` are two sources of one checkpoint"),
        ("  path: /a\n  nnx: m:f\n", "`path` and `nnx` are two sources of one checkpoint"),
        ("  spec: {}\n  scale: 0.1\n", "`scale` needs `model`"),
        ("  optimizer: adamw\n", "`optimizer` needs `model`"),
        ("  path: /a\n  dtypes: {params: int8}\n", "`dtypes` needs `model`"),
    ],
)
def test_keys_that_do_not_go_together_are_named_at_the_block(only_problem, lines, message):
    problem = only_problem(f"checkpoint_config:\n{lines}")
    assert (problem.line, problem.key) == (4, "checkpoint_config")
    assert message in problem.message


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"model": "gpt2"}, "gpt2"),
        ({"model": "gpt2", "scale": 1.0, "optimizer": "none"}, "gpt2"),
        ({"model": "llama-8b", "scale": 0.01, "optimizer": "adamw"}, "llama-8b@0.01+adamw"),
        ({"model": "gpt2", "dtypes": {"params": "int8"}}, "gpt2+params:int8"),
        ({"nnx": "my.models:make"}, "make"),
        ({"spec": {"params": "int"}, "name": "mine"}, "mine"),
    ],
)
def test_a_label_tells_presets_apart(fields, label):
    assert CheckpointConfig(**fields).label == label


def test_a_leaf_of_the_host_is_written_only_where_it_is_given():
    plain = {"dtype": "int8", "shape": [4]}
    assert ArraySpec(**plain).model_dump(mode="json") == {**plain, "sharding": None}
    assert ArraySpec(**plain, host=True).model_dump(mode="json")["host"] is True
    with pytest.raises(ValueError, match="is not sharded; leave out its sharding"):
        ArraySpec(**plain, host=True, sharding=["x"])


@pytest.mark.parametrize(
    "alias",
    ["bool_", "int_", "uint", "float_", "single", "double", "complex_", "csingle", "cdouble"],
)
def test_an_alias_means_what_jax_means(alias):
    assert jnp.dtype(canonical(alias)) == jnp.dtype(getattr(jnp, alias))
