import math

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers import GENERATIONS, parse_slice
from orbax_bench_core.launchers.tpus import slice_shape, topologies

EVERY = [
    pytest.param(generation, topology, id=f"{generation.name}-{topology}")
    for generation in GENERATIONS
    for topology in generation.topologies
]
CUBES = [generation for generation in GENERATIONS if generation.largest_cube]


def message(*arguments):
    with pytest.raises(UserError) as error:
        slice_shape(*arguments)
    return str(error.value)


@pytest.mark.parametrize(("generation", "topology"), EVERY)
def test_hosts_hold_all_chips_of_a_slice(generation, topology):
    shape = slice_shape(generation.name, topology)
    assert shape.hosts * shape.chips_per_host == shape.chips
    assert shape.chips == math.prod(map(int, topology.split("x")))
    assert shape.machine_type.endswith(f"-{shape.chips_per_host}t")


@pytest.mark.parametrize(
    ("generation", "topology", "hosts", "machine_type"),
    [
        ("v4", "2x2x1", 1, "ct4p-hightpu-4t"),
        ("v4", "2x2x4", 4, "ct4p-hightpu-4t"),
        ("v5e", "1x1", 1, "ct5lp-hightpu-1t"),
        ("v5e", "2x2", 1, "ct5lp-hightpu-4t"),
        ("v5e", "2x4", 1, "ct5lp-hightpu-8t"),
        ("v5e", "4x4", 4, "ct5lp-hightpu-4t"),
        ("v5e", "16x16", 64, "ct5lp-hightpu-4t"),
        ("v5p", "4x4x4", 16, "ct5p-hightpu-4t"),
        ("v6e", "2x4", 1, "ct6e-standard-8t"),
        ("v6e", "8x8", 16, "ct6e-standard-4t"),
        ("v7x", "1x1x1", 1, "tpu7x-standard-1t"),
        ("v7x", "2x4x4", 8, "tpu7x-standard-4t"),
    ],
)
def test_hosts_and_machines_are_those_of_google(generation, topology, hosts, machine_type):
    shape = slice_shape(generation, topology)
    assert (shape.hosts, shape.machine_type) == (hosts, machine_type)


@pytest.mark.parametrize("generation", CUBES, ids=lambda generation: generation.name)
def test_larger_cubes_have_ascending_multiples_of_four(generation):
    larger = set(topologies(generation)) - set(generation.topologies)
    assert {"4x4x8", "4x8x8", "8x8x8", "8x8x12"} <= larger
    for topology in larger:
        sides = [int(side) for side in topology.split("x")]
        assert all(side % 4 == 0 for side in sides)
        assert sides == sorted(sides)
        assert slice_shape(generation.name, topology).chips <= generation.largest_cube


@pytest.mark.parametrize("topology", ["4x4x6", "8x4x4", "4x4x04", "32x32x32", "4x4", "6x6x6"])
@pytest.mark.parametrize("generation", CUBES, ids=lambda generation: generation.name)
def test_other_cubes_are_none(generation, topology):
    assert "is not a topology; did you mean" in message(generation.name, topology)


def test_2x4_is_one_host_unless_the_machines_are_named():
    assert slice_shape("v5e", "2x4").hosts == 1
    assert slice_shape("v5e", "2x4", "ct5lp-hightpu-4t").hosts == 2
    assert parse_slice("v6e:2x4:ct6e-standard-4t").hosts == 2


def test_a_machine_that_the_slice_does_not_have_is_refused():
    assert message("v5e", "2x4", "ct5lp-hightpu-1t") == (
        "TPU v5e 2x4 has machines ct5lp-hightpu-4t or ct5lp-hightpu-8t, not 'ct5lp-hightpu-1t'"
    )


@pytest.mark.parametrize(
    ("given", "meant"), [("3x3", "2x4"), ("4x2", "2x4"), ("2x2x1", "2x2"), ("32x32", "16x16")]
)
def test_the_nearest_topology_is_suggested(given, meant):
    assert message("v5e", given) == (
        f"v5e {given} is not a topology; did you mean {meant}? v5e has 1x1, 2x2, 2x4, 4x4, 4x8, "
        "8x8, 8x16, 16x16"
    )


@pytest.mark.parametrize("topology", ["", "banana", "2xx4", "-2x4", "0x4", "²x2"])
def test_what_is_no_topology_at_all_is_refused(topology):
    assert f"v5e {topology} is not a topology; v5e has" in message("v5e", topology)
