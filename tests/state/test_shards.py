from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.state import layout


def _offsets(
    mesh: Mesh, spec: PartitionSpec, shape: tuple[int, ...]
) -> tuple[dict[jax.Device, list[int]], NamedSharding]:
    sharding = NamedSharding(mesh, spec)

    def body(unused: jax.Array) -> jax.Array:
        return jnp.stack(layout.offsets(sharding, shape))

    program = layout.over_shards(
        body, sharding, inputs=PartitionSpec(), outputs=PartitionSpec(mesh.axis_names)
    )
    with jax.enable_x64(True):
        made = program(jnp.zeros(()))
    return {s.device: np.asarray(s.data).tolist() for s in made.addressable_shards}, sharding


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (PartitionSpec("x", "y"), (8, 6)),
        (PartitionSpec(None, ("y", "x")), (8, 16)),
        (PartitionSpec("y"), (8, 6, 2)),
        (PartitionSpec(), (8,)),
        (PartitionSpec("x"), (2**40, 3)),
        (PartitionSpec(("x", "y")), (2**32 + 64,)),
    ],
)
def test_offsets_are_where_jax_puts_the_shards(
    make_mesh: Callable[..., Mesh], spec: PartitionSpec, shape: tuple[int, ...]
) -> None:
    found, sharding = _offsets(make_mesh(x=4, y=2), spec, shape)
    expected = sharding.devices_indices_map(shape)
    assert found == {d: [part.start or 0 for part in index] for d, index in expected.items()}
