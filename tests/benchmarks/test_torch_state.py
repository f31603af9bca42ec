"""A tree of JAX is the same tree in PyTorch, whose processes are a group, and again in JAX."""

import jax
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.support.pytorch import device_of_rank, join_ranks
from orbax_bench_core.benchmarks.support.saving import load_target
from orbax_bench_core.state import digest
from orbax_bench_core.state.torch import TorchLayout

pytestmark = pytest.mark.nightly  # which installs PyTorch

CPU = torch.device("cpu")
SPEC = {
    "rows": {"dtype": "bfloat16", "shape": [8, 6], "sharding": ["fsdp"]},
    "nested": {
        "columns": {"dtype": "float32", "shape": [3, 16], "sharding": [None, "fsdp"]},
        "both": {"dtype": "float8_e5m2", "shape": [16, 2], "sharding": [["fsdp", "data"]]},
        "replicated": {"dtype": "int32", "shape": [5]},
        "count": {"dtype": "int32", "shape": []},
    },
    "step": "int",
    "name": "str",
}


@pytest.fixture(scope="module")
def tree(make_tree, make_mesh):
    return make_tree(SPEC, make_mesh(data=2, fsdp=4))


@pytest.fixture(scope="module")
def layout(tree):
    return TorchLayout(load_target(tree), CPU, join=True)


@pytest.fixture(scope="module")
def whole(tree, layout):
    join_ranks(CPU)
    return layout.distribute(layout.local(tree))


def test_names_are_dotted_paths_and_scalars_stay(tree, layout):
    local = layout.local(tree)
    assert set(local) == {
        *("rows", "nested.columns", "nested.both", "nested.replicated", "nested.count"),
        *("step", "name"),
    }
    assert (local["step"], local["name"]) == (tree["step"], tree["name"])


def test_values_come_back(tree, layout):
    back = layout.to_jax(layout.local(tree))
    assert digest(back) == digest(tree)
    assert back["rows"].sharding == tree["rows"].sharding


def test_a_wrong_bit_changes_what_comes_back(tree, layout):
    local = {
        name: one.clone() if isinstance(one, torch.Tensor) else one
        for name, one in layout.local(tree).items()
    }
    local["rows"].view(torch.uint8)[3, 1] ^= 1
    assert digest(layout.to_jax(local)) != digest(tree)


def test_the_whole_has_the_placements_of_the_sharding(whole):
    found = {name: (one.placements, tuple(one.shape)) for name, one in whole.items() if is_d(one)}
    assert found == {
        "rows": ((Replicate(), Shard(0)), (8, 6)),
        "nested.columns": ((Replicate(), Shard(1)), (3, 16)),
        "nested.both": ((Shard(0), Shard(0)), (16, 2)),
        "nested.replicated": ((Replicate(), Replicate()), (5,)),
        "nested.count": ((Replicate(), Replicate()), ()),
    }


def is_d(one):
    return isinstance(one, DTensor)


def test_the_whole_comes_back_too(tree, layout, whole):
    assert digest(layout.to_jax(whole)) == digest(tree)


def test_an_array_without_a_mesh_is_a_plain_tensor():
    array = jax.device_put(np.arange(3.0), jax.devices()[0])
    layout = TorchLayout(load_target({"w": array}), CPU, join=False)
    tensors = layout.distribute(layout.local({"w": array}))
    assert not is_d(tensors["w"])
    assert digest(layout.to_jax(tensors)) == digest({"w": array})


@pytest.mark.parametrize(
    ("platform", "said"),
    [("tpu", "JAX runs on tpu here, which PyTorch cannot use"), ("gpu", "a PyTorch with CUDA")],
)
def test_other_devices_are_refused_in_one_line(monkeypatch, platform, said):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UnmetNeed, match=said) as raised:
        device_of_rank("pytorch_dcp")
    assert "\n" not in str(raised.value)


def test_one_process_is_a_group_of_its_own_and_makes_it_once():
    join_ranks(CPU)
    group = dist.group.WORLD
    join_ranks(CPU)
    assert dist.group.WORLD is group
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
