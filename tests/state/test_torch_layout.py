"""Parts of an array by process, and PyTorch's form of them."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.state.torch_ranks import over_ranks, part_of_process

AXES = ("a", "b")


def placed(owners, spec):
    ranks = over_ranks(np.array(owners, np.int64), AXES, spec)
    return ranks.grid.tolist(), ranks.axes, ranks.dimensions


@pytest.mark.parametrize(
    ("owners", "spec", "expected"),
    [
        # One device per process: a rank for each.
        ([[0, 1], [2, 3]], P("a"), ([[0, 1], [2, 3]], AXES, (0, None))),
        ([[0, 1], [2, 3]], P(None, "b"), ([[0, 1], [2, 3]], AXES, (None, 1))),
        ([[0, 1], [2, 3]], P("b", "a"), ([[0, 1], [2, 3]], AXES, (1, 0))),
        ([[0, 1], [2, 3]], P(), ([[0, 1], [2, 3]], AXES, (None, None))),
        ([[0, 1], [2, 3]], P(("a", "b")), ([[0, 1], [2, 3]], AXES, (0, 0))),
        # PyTorch cuts by the first axis first, so the axes change places.
        ([[0, 1], [2, 3]], P(("b", "a")), ([[0, 2], [1, 3]], ("b", "a"), (0, 0))),
        ([[3, 1], [2, 0]], P("a"), ([[3, 1], [2, 0]], AXES, (0, None))),
        # Several devices per process: a rank for each block of the mesh.
        ([[0, 0], [1, 1]], P("a", "b"), ([[0], [1]], AXES, (0, 1))),
        ([[0, 0, 1, 1], [2, 2, 3, 3]], P("b"), ([[0, 1], [2, 3]], AXES, (None, 0))),
        ([[0, 0], [0, 0]], P("a"), ([[0]], AXES, (0, None))),
    ],
)
def test_processes_form_a_grid(owners, spec, expected):
    assert placed(owners, spec) == expected


@pytest.mark.parametrize("owners", [[[0, 1], [1, 0]], [[0, 1, 0, 1]], [[0, 1, 1]]])
def test_a_process_must_hold_a_block_of_the_mesh(owners):
    with pytest.raises(UnmetNeed, match=r"are no block of the mesh .* set as many processes as"):
        placed(owners, P())


def sharding(*spec):
    return NamedSharding(Mesh(np.array(jax.devices()).reshape(4, 2), AXES), P(*spec))


def test_the_shards_of_a_process_are_one_part():
    part = part_of_process("w", (8, 4), sharding("a", "b"), join=True)
    assert part == (slice(0, 8), slice(0, 4))


def test_several_devices_are_refused_unless_their_shards_may_be_joined():
    message = "here a process has 8: set processes: 8 under execution .* join_local_shards: true"
    with pytest.raises(UnmetNeed, match=message):
        part_of_process("w", (8, 4), sharding("a"), join=False)


class Scattered:
    """Holds the first and the last quarter of an array, as a process may of two axes."""

    addressable_devices = (0, 1)
    device_set = (0, 1, 2, 3)

    def addressable_devices_indices_map(self, shape):
        return {0: (slice(0, 2),), 1: (slice(6, 8),)}


def test_shards_that_lie_apart_cannot_be_joined():
    with pytest.raises(UnmetNeed, match="the shards of 'w' that a process holds are not side"):
        part_of_process("w", (8,), Scattered(), join=True)
