"""Chunks that hosts touch, held against sets of chunks counted one by one."""

import itertools
import math

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.plan import PlanMesh, ReadArray, read_cost


def counted(array, mesh):
    """Returns bytes needed, touched, and touched once per shard, of each host."""
    entries = [*array.spec, *[None] * (len(array.shape) - len(array.spec))]
    axes = [() if e is None else (e,) if isinstance(e, str) else e for e in entries]
    shard = [size // mesh.size(a) for size, a in zip(array.shape, axes, strict=True)]
    places = list(zip(*(mesh.coordinate(a).tolist() for a in axes), strict=True))
    found = []
    for host in range(mesh.num_hosts):
        local = set(places[host * mesh.devices_per_host : (host + 1) * mesh.devices_per_host])
        touched = [
            set(
                itertools.product(
                    *(
                        range(k * s // c, math.ceil((k + 1) * s / c))
                        for k, s, c in zip(place, shard, array.chunk_shape, strict=True)
                    )
                )
            )
            for place in local
        ]
        chunk = math.prod(array.chunk_shape) * array.itemsize
        found.append(
            (
                len(local) * math.prod(shard) * array.itemsize,
                len(set().union(*touched)) * chunk,
                sum(map(len, touched)) * chunk,
            )
        )
    return found


@pytest.mark.parametrize("per_host", [1, 2, 6, 12])
@pytest.mark.parametrize("spec", [(), ("x",), ("y", "x"), (None, ("y", "x")), (("x", "z"), "y")])
@pytest.mark.parametrize("chunk", [(24, 24), (8, 24), (5, 7), (2, 3), (24, 1)])
def test_hosts_read_what_counting_says(per_host, spec, chunk):
    mesh = PlanMesh(("z", "x", "y"), (2, 3, 2), per_host)
    array = ReadArray("w", (24, 24), 4, chunk, spec)
    cost = read_cost([array], mesh)
    read = zip(cost.need.tolist(), cost.least.tolist(), cost.most.tolist(), strict=True)
    assert list(read) == counted(array, mesh)


def test_a_load_onto_the_same_mesh_reads_nothing_twice_and_columns_each_chunk_once_per_shard():
    mesh = PlanMesh(("x",), (8,), 4)
    cost = read_cost([ReadArray("w", (64, 8), 4, (8, 8), ("x",))], mesh)
    assert (cost.least_ratio, cost.most_ratio) == (1.0, 1.0)
    cost = read_cost([ReadArray("w", (64, 64), 4, (8, 64), (None, "x"))], mesh)
    assert (cost.least_ratio, cost.most_ratio) == (2.0, 8.0)
    assert cost.largest == ("w", 64 * 64 * 4)


@pytest.mark.parametrize("per_host", [3, 4])
def test_hosts_that_are_no_box_of_the_mesh_are_refused(per_host):
    mesh = PlanMesh(("z", "x", "y"), (2, 3, 2), per_host)
    said = (
        f"--devices-per-host: the {per_host} devices of a host are no box in the mesh z=2,x=3,y=2"
    )
    with pytest.raises(UserError, match=said):
        read_cost([ReadArray("w", (24, 24), 4, (8, 24), ("x",))], mesh)
