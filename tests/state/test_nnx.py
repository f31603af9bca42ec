from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh
from orbax.checkpoint import v1 as ocp

pytest.importorskip("flax")

from orbax_bench_core.state import nnx
from orbax_bench_core.state.digests import digest
from orbax_bench_core.state.tree import StateError

MANY = "nnx_models:Many"


@pytest.fixture(autouse=True)
def _models_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def _outputs(model: Any) -> np.ndarray[Any, Any]:
    from nnx_models import inputs  # type: ignore[import-not-found]

    return np.asarray(model(*inputs()))


@pytest.mark.slow
def test_arrays_are_born_with_the_models_shardings(make_mesh: Callable[..., Mesh]) -> None:
    tree = nnx.make_state(MANY, seed=0, mesh=make_mesh(fsdp=8))
    kernel = tree["blocks"]["10"]["kernel"]
    assert kernel.sharding.shard_shape(kernel.shape) == (2, 16)
    assert tree["mean"].sharding.is_fully_replicated


@pytest.mark.slow
def test_values_do_not_depend_on_the_mesh(make_mesh: Callable[..., Mesh]) -> None:
    whole = nnx.make_state(MANY, seed=3, mesh=None)
    sharded = nnx.make_state(MANY, seed=3, mesh=make_mesh(fsdp=4))
    assert digest(whole) == digest(sharded)


@pytest.mark.slow
def test_a_merged_model_says_what_the_original_says() -> None:
    from flax import nnx as flax_nnx
    from nnx_models import Many

    tree = nnx.make_state(MANY, seed=5, mesh=None)
    with flax_nnx.use_eager_sharding(False):
        original = jax.jit(lambda: flax_nnx.split(Many(flax_nnx.Rngs(5))))
        graph, state = original()
    expected = _outputs(flax_nnx.merge(graph, state))
    np.testing.assert_array_equal(_outputs(nnx.merge(MANY, tree)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [4, pytest.param(8, marks=pytest.mark.nightly)])
def test_a_model_survives_a_save_and_a_load_onto_another_mesh(
    tmp_path: Path, make_mesh: Callable[..., Mesh], devices: int
) -> None:
    tree = nnx.make_state(MANY, seed=0, mesh=make_mesh(fsdp=2))
    ocp.save(tmp_path / "ckpt", tree)
    restored = ocp.load(tmp_path / "ckpt", nnx.target_on(tree, make_mesh(fsdp=devices)))
    assert len(restored["blocks"]["0"]["kernel"].sharding.device_set) == devices
    assert digest(restored) == digest(tree)
    before, after = (_outputs(nnx.merge(MANY, one)) for one in (tree, restored))
    np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-3 * np.abs(before).max())


@pytest.mark.slow
def test_a_tree_moves_to_another_mesh(make_mesh: Callable[..., Mesh]) -> None:
    tree = nnx.make_state(MANY, seed=0, mesh=make_mesh(fsdp=8))
    moved = nnx.onto(tree, make_mesh(fsdp=2))
    kernel = moved["blocks"]["0"]["kernel"]
    assert kernel.sharding.shard_shape(kernel.shape) == (8, 16)
    assert digest(moved) == digest(tree)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("no_such_module:make", "cannot import 'no_such_module:make'"),
        ("nnx_models:absent", "cannot import 'nnx_models:absent'"),
        ("nnx_models:NOT_CALLABLE", "is of type int; give a function or a class"),
        ("nnx_models:not_a_model", "returned dict; a factory returns an nnx.Module"),
        ("nnx_models:failing", r"fails when it is called with nnx\.Rngs\(0\): RuntimeError: no we"),
    ],
)
def test_a_factory_that_cannot_be_used_is_named(factory: str, message: str) -> None:
    with pytest.raises(StateError, match=message):
        nnx.make_state(factory, seed=0, mesh=None)


def test_a_sharding_that_does_not_fit_names_the_variable(make_mesh: Callable[..., Mesh]) -> None:
    with pytest.raises(StateError, match=r"leaf 'linear\.kernel': dimension 0 has 6 elements"):
        nnx.make_state("nnx_models:Uneven", seed=0, mesh=make_mesh(fsdp=4))


@pytest.mark.slow
def test_the_state_of_another_model_is_refused() -> None:
    other = nnx.make_state("nnx_models:Uneven", seed=0, mesh=None)
    with pytest.raises(StateError, match=r"the root of the tree should have \['blocks', "):
        nnx.merge(MANY, other)
