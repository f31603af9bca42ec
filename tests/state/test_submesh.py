from __future__ import annotations

from collections.abc import Callable

import pytest
from jax.sharding import Mesh

from orbax_bench_core.state.mesh import first_devices
from orbax_bench_core.state.tree import StateError


@pytest.mark.parametrize(
    ("sizes", "count", "shape"),
    [
        ({"x": 8}, 8, {"x": 8}),
        ({"x": 8}, 3, {"x": 3}),
        ({"x": 2, "y": 4}, 4, {"x": 2, "y": 2}),
        ({"x": 4, "y": 2}, 2, {"x": 1, "y": 2}),
    ],
)
def test_the_longest_axis_becomes_shorter(
    make_mesh: Callable[..., Mesh], sizes: dict[str, int], count: int, shape: dict[str, int]
) -> None:
    whole = make_mesh(**sizes)
    part = first_devices(whole, count)
    assert dict(part.shape) == shape
    assert part.devices.flat[0] == whole.devices.flat[0]
    assert part.size == count


@pytest.mark.parametrize("count", [0, 3, 16])
def test_a_number_that_forms_no_mesh_is_refused(make_mesh: Callable[..., Mesh], count: int) -> None:
    with pytest.raises(StateError, match=r"give one of \[2, 4, 6, 8\]"):
        first_devices(make_mesh(x=2, y=4), count)
