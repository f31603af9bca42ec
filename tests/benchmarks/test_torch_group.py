"""Process group of PyTorch, and its unmet needs."""

import jax
import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

import torch
import torch.distributed as dist

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.support.torch_group import device_of_rank, join_ranks

pytestmark = pytest.mark.nightly  # which installs PyTorch

CPU = torch.device("cpu")


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
