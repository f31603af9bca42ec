"""Shardings of a spec, and where their shards begin."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import ArraySpec, ShardingEntry
from orbax_bench_core.state import layout
from orbax_bench_core.state.tree import StateError

Entries = tuple[ShardingEntry, ...]


def _spec(sharding: Entries | None, shape: tuple[int, ...] = (8, 10)) -> ArraySpec:
    return ArraySpec(dtype="float32", shape=shape, sharding=sharding)


def test_no_sharding_replicates_over_the_mesh(make_mesh: Callable[..., Mesh]) -> None:
    sharding = layout.sharding_of("w", _spec(None), make_mesh(x=8))
    assert sharding is not None
    assert sharding.is_fully_replicated
    assert len(sharding.device_set) == 8


def test_a_sharding_needs_a_mesh() -> None:
    with pytest.raises(
        StateError, match=r"leaf 'p\.w': sharding \['x'\] needs a mesh.*mesh_config"
    ):
        layout.sharding_of("p.w", _spec(("x",)), None)


def test_an_axis_must_be_in_the_mesh(make_mesh: Callable[..., Mesh]) -> None:
    with pytest.raises(StateError, match=r"leaf 'w': axis 'z' is not one of the mesh axes \['x'\]"):
        layout.sharding_of("w", _spec(("z",)), make_mesh(x=8))


@pytest.mark.parametrize("entries", [("x", "x"), (("x", "x"),)])
def test_an_axis_shards_one_dimension(make_mesh: Callable[..., Mesh], entries: Entries) -> None:
    with pytest.raises(StateError, match="axis 'x' shards two dimensions"):
        layout.sharding_of("w", _spec(entries, (8, 8)), make_mesh(x=2))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            (None, "fsdp"),
            (
                "leaf 'params.w': dimension 1 has 10 elements, which axis 'fsdp' of size 4 does "
                "not divide; use a multiple of 4 or shard another dimension"
            ),
        ),
        (
            (None, ("data", "fsdp")),
            (
                "leaf 'params.w': dimension 1 has 10 elements, which axes 'data' and 'fsdp' of "
                "size 8 do not divide; use a multiple of 8 or shard another dimension"
            ),
        ),
    ],
)
def test_a_partition_must_be_even(
    make_mesh: Callable[..., Mesh], entries: Entries, message: str
) -> None:
    with pytest.raises(StateError) as raised:
        layout.sharding_of("params.w", _spec(entries), make_mesh(data=2, fsdp=4))
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("entries", "copies"), [(None, 8), (("x", None), 2), (("x", "y"), 1), ((("x", "y"),), 1)]
)
def test_local_bytes_count_replicas(
    make_mesh: Callable[..., Mesh], entries: Entries | None, copies: int
) -> None:
    spec = _spec(entries)
    sharding = layout.sharding_of("w", spec, make_mesh(x=4, y=2))
    assert layout.local_bytes(spec, sharding) == copies * 8 * 10 * 4


@pytest.mark.parametrize(
    ("shape", "shard"),
    [
        ((64, 6), (8, 6)),
        ((2, 12), (1, 3)),
        ((4, 4), (1, 2)),
        ((3, 5), (3, 5)),
        ((0, 8), (0, 1)),
        ((), ()),
    ],
)
def test_spread_shards_as_far_as_dimensions_allow(
    shape: tuple[int, ...], shard: tuple[int, ...]
) -> None:
    assert layout.spread(shape, jax.devices()).shard_shape(shape) == shard


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
