"""Mesh axes that shard each kind of dimension."""

import pytest

from orbax_bench_core.config.models import partition


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
