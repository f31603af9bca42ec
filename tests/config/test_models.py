"""Presets have the trees and sizes of the models whose names they bear."""

import math

import jax
import jax.numpy as jnp
import pytest

from orbax_bench_core.config.checkpoint import MODELS, CheckpointConfig
from orbax_bench_core.config.mesh import MeshConfig, sharding_conflict
from orbax_bench_core.config.model_sharding import partition
from orbax_bench_core.config.models import expanded
from orbax_bench_core.config.spec import ArraySpec, leaves
from orbax_bench_core.state import named_leaves

PUBLISHED = {
    "llama-8b": 8_030_261_248,
    "llama-70b": 70_553_706_496,
    "llama-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "gpt2": 124_439_808,
}
SCALES = [1, 0.3, 0.1, 0.01]
MESHES = [
    pytest.param({"fsdp": 8}, id="fsdp"),
    pytest.param({"data": 2, "fsdp": 2, "tensor": 4}, id="three axes"),
    pytest.param({"fsdp": 256, "tensor": 2}, id="more parts than the grain"),
    pytest.param({"expert": 8, "stage": 4}, id="experts and stages"),
    pytest.param({"fsdp": 3, "tp": 5}, id="odd sizes"),
    pytest.param({"rows": 7}, id="an axis without a rule"),
]


def mesh_of(sizes):
    return MeshConfig(mesh_axes=list(sizes), ici_parallelism=sizes)


def arrays(mesh=None, **fields):
    """Arrays of an expanded preset by dotted path."""
    spec = expanded(CheckpointConfig(**fields), mesh).spec
    return {".".join(path): leaf for path, leaf in leaves(spec)}


def num_elements(found):
    return sum(math.prod(leaf.shape) for leaf in found.values())


@pytest.mark.parametrize(("model", "count"), PUBLISHED.items())
def test_a_preset_has_the_published_number_of_parameters(model, count):
    assert num_elements(arrays(model=model)) == count


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scale", SCALES[1:])
def test_a_scaled_preset_keeps_the_tree_and_is_smaller(model, scale):
    full, scaled = arrays(model=model), arrays(model=model, scale=scale)
    assert list(scaled) == list(full)
    assert num_elements(scaled) < num_elements(full)
    for name, leaf in scaled.items():
        sizes = zip(leaf.shape, full[name].shape, strict=True)
        assert all(1 <= size <= whole for size, whole in sizes), name


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sizes", MESHES)
def test_every_mesh_holds_every_preset_at_every_scale(model, scale, sizes):
    mesh = mesh_of(sizes)
    checkpoint = expanded(CheckpointConfig(model=model, scale=scale, optimizer="adamw"), mesh)
    assert sharding_conflict(checkpoint, mesh) is None


def test_the_layers_of_llama_are_stacked_as_in_maxtext():
    found = arrays(mesh_of({"fsdp": 4, "tensor": 2}), model="llama-8b")
    assert {
        name.removeprefix("params.params."): (leaf.shape, leaf.sharding)
        for name, leaf in found.items()
    } == {
        "token_embedder.embedding": ((128256, 4096), ("tensor", "fsdp")),
        "decoder.layers.pre_self_attention_layer_norm.scale": ((4096, 32), ("tensor", None)),
        "decoder.layers.self_attention.query.kernel": (
            (4096, 32, 32, 128),
            ("fsdp", None, "tensor", None),
        ),
        "decoder.layers.self_attention.key.kernel": (
            (4096, 32, 8, 128),
            ("fsdp", None, "tensor", None),
        ),
        "decoder.layers.self_attention.value.kernel": (
            (4096, 32, 8, 128),
            ("fsdp", None, "tensor", None),
        ),
        "decoder.layers.self_attention.out.kernel": (
            (32, 32, 128, 4096),
            ("tensor", None, None, "fsdp"),
        ),
        "decoder.layers.post_self_attention_layer_norm.scale": ((4096, 32), ("tensor", None)),
        "decoder.layers.mlp.wi_0.kernel": ((4096, 32, 14336), ("fsdp", None, "tensor")),
        "decoder.layers.mlp.wi_1.kernel": ((4096, 32, 14336), ("fsdp", None, "tensor")),
        "decoder.layers.mlp.wo.kernel": ((14336, 32, 4096), ("tensor", None, "fsdp")),
        "decoder.decoder_norm.scale": ((4096,), ("tensor",)),
        "decoder.logits_dense.kernel": ((4096, 128256), ("fsdp", "tensor")),
    }


def test_gpt2_has_the_148_tensors_of_its_published_file():
    found = arrays(model="gpt2")
    assert len(found) == 148
    assert found["params.h.11.attn.c_attn.weight"].shape == (768, 2304)


def test_dtypes_are_chosen_by_group():
    found = arrays(
        model="gpt2", optimizer="adamw", dtypes={"params": "bfloat16", "optimizer": "float32"}
    )
    kinds = {name.partition(".")[0]: set() for name in found if not name.endswith("count")}
    for name, leaf in found.items():
        if not name.endswith("count"):
            kinds[name.partition(".")[0]].add(leaf.dtype)
    assert kinds == {"step": {"int32"}, "params": {"bfloat16"}, "opt_state": {"float32"}}


def test_a_preset_becomes_an_ordinary_checkpoint():
    checkpoint = expanded(
        CheckpointConfig(model="llama-8b", scale=0.01, optimizer="sgd", random_seed=3), None
    )
    assert checkpoint.model is None
    assert checkpoint.random_seed == 3
    assert checkpoint.label == "llama-8b@0.01+sgd"
    assert all(isinstance(leaf, ArraySpec) for _, leaf in leaves(checkpoint.spec))


@pytest.mark.parametrize(
    ("mesh", "sharding"),
    [
        ((), None),
        ((("data", 8),), None),
        ((("fsdp", 8),), ("fsdp", None)),
        ((("tensor", 8),), (None, "tensor")),
        ((("model", 8),), (None, "model")),
        ((("tp", 2), ("fsdp", 4)), ("fsdp", "tp")),
        ((("fsdp", 1), ("tp", 2)), (None, "tp")),
        ((("fsdp_transpose", 2), ("fsdp", 2)), ("fsdp", "fsdp_transpose")),
        ((("sp", 2), ("fsdp", 2)), (("fsdp", "sp"), None)),
    ],
)
def test_a_weight_is_sharded_by_the_names_of_the_axes(mesh, sharding):
    assert partition(("embed", "mlp"), (64, 64), (64, 64), mesh) == sharding


def test_an_axis_that_does_not_divide_its_dimension_replicates():
    assert partition(("vocab", "embed"), (50257, 768), (50257, 768), (("tp", 2), ("fsdp", 3))) == (
        None,
        "fsdp",
    )


optax = pytest.importorskip("optax")
train_state = pytest.importorskip("flax.training.train_state")


def schedule(_):
    return 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "transformation"),
    [("adamw", optax.adamw(schedule)), ("sgd", optax.sgd(schedule, momentum=0.9))],
)
def test_leaves_and_shapes_are_those_that_flax_and_optax_make(name, transformation):
    checkpoint = expanded(CheckpointConfig(model="gpt2", scale=0.1, optimizer=name), None)
    found = {".".join(path): leaf for path, leaf in leaves(checkpoint.spec)}
    params = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
        dict(checkpoint.spec["params"]),
        is_leaf=lambda node: hasattr(node, "dtype"),
    )
    state = train_state.TrainState.create(apply_fn=None, params=params, tx=transformation)
    state = state.replace(step=jnp.int32(0))
    made = {path: (leaf.shape, leaf.dtype.name) for path, leaf in named_leaves(state)}
    assert {name: (leaf.shape, leaf.dtype) for name, leaf in found.items()} == made


@pytest.mark.parametrize(("name", "copies"), [("none", 1), ("sgd", 2), ("adamw", 3)])
def test_an_optimizer_keeps_copies_of_the_parameters(name, copies):
    def elements(optimizer):
        spec = expanded(CheckpointConfig(model="llama-8b", optimizer=optimizer), None).spec
        return sum(math.prod(leaf.shape) for _, leaf in leaves(spec) if leaf.shape)

    assert elements(name) == copies * elements("none")


@pytest.mark.parametrize(
    ("model", "layers", "kinds"), [("llama-8b", 32, 9), ("mixtral-8x7b", 32, 10)]
)
def test_unstacked_layers_are_arrays_of_their_own_with_the_same_elements(model, layers, kinds):
    mesh = mesh_of({"fsdp": 4})
    stacked = arrays(mesh, model=model, scale=0.01)
    unstacked = arrays(mesh, model=model, scale=0.01, layers="unstacked")
    assert num_elements(unstacked) == num_elements(stacked)
    # The embedding, the last norm and the logits are no layers.
    assert (len(stacked), len(unstacked)) == (kinds + 3, kinds * layers + 3)
    one = unstacked["params.params.decoder.layers_31.self_attention.query.kernel"]
    every = stacked["params.params.decoder.layers.self_attention.query.kernel"]
    assert every.shape == (one.shape[0], layers, *one.shape[1:])
    assert (one.sharding[0], every.sharding[0]) == ("fsdp", "fsdp")


def test_layers_are_as_published_unless_a_suite_says_otherwise():
    assert arrays(model="llama-8b", layers="stacked") == arrays(model="llama-8b")
    assert arrays(model="gpt2", layers="unstacked") == arrays(model="gpt2")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": "gpt2", "layers": "stacked"}, "gpt2 has each layer on its own, as published"),
        ({"layers": "unstacked"}, "`layers` needs `model`, such as llama-8b"),
    ],
)
def test_layers_that_no_preset_has_are_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        CheckpointConfig(**fields)
