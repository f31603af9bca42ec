"""Meshes over devices that are here and that are not, and parts of them."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from orbax_bench_core.config import MeshConfig
from orbax_bench_core.state.mesh import MeshDoesNotFit, build_mesh, device_grid, first_devices
from orbax_bench_core.state.tree import StateError


@dataclasses.dataclass(frozen=True)
class Device:
    """Stands in for hardware that is not here."""

    id: int
    process_index: int = 0
    platform: str = "cpu"
    device_kind: str = "cpu"
    slice_index: int = 0
    coords: tuple[int, int, int] = (0, 0, 0)
    core_on_chip: int = 0


def _config(
    axes: str, ici: dict[str, int], dcn: dict[str, int] | None = None, **rest: Any
) -> MeshConfig:
    return MeshConfig(mesh_axes=tuple(axes), ici_parallelism=ici, dcn_parallelism=dcn, **rest)


def _devices(counts: list[int], by: str = "process_index", platform: str = "cpu") -> list[Any]:
    groups = [group for group, count in enumerate(counts) for _ in range(count)]
    return [
        Device(
            id=index,
            platform=platform,
            process_index=group if by == "process_index" else 0,
            slice_index=group if by == "slice_index" else 0,
        )
        for index, group in enumerate(groups)
    ]


def _ids(grid: np.ndarray[Any, Any]) -> list[Any]:
    ids: list[Any] = np.vectorize(lambda device: device.id)(grid).tolist()
    return ids


def test_the_order_of_the_devices_given_does_not_matter() -> None:
    config = _config("a", {"a": 8})
    assert (device_grid(config, jax.devices()[::-1]) == build_mesh(config).devices).all()


def test_another_number_of_devices_does_not_fit() -> None:
    config = _config("ab", {"a": 2, "b": 4})
    with pytest.raises(MeshDoesNotFit, match="mesh a2b4 needs 8 devices; 4 are here; change"):
        device_grid(config, jax.devices()[:4])


@pytest.mark.parametrize(
    ("ici", "dcn", "expected"),
    [
        ({"b": 4}, {"a": 2}, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ({"a": 4}, {"b": 2}, [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ({"a": 2, "b": 2}, {"a": 2}, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ({"a": 2, "b": 2}, {"b": 2}, [[0, 1, 4, 5], [2, 3, 6, 7]]),
        ({"a": 2}, {"a": 2, "b": 2}, [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ({"a": 8}, {}, [[0], [1], [2], [3], [4], [5], [6], [7]]),
    ],
)
def test_dcn_axes_cross_slices_simulated_in_one_process(
    ici: dict[str, int], dcn: dict[str, int], expected: list[list[int]]
) -> None:
    assert _ids(build_mesh(_config("ab", ici, dcn)).devices) == expected


@pytest.mark.parametrize("process_is_granule", [False, True])
@pytest.mark.parametrize(("ici", "dcn"), [({"a": 4}, {"b": 2}), ({"b": 4}, {"a": 2})])
def test_dcn_axes_cross_processes_wherever_they_stand(
    process_is_granule: bool, ici: dict[str, int], dcn: dict[str, int]
) -> None:
    config = _config("ab", ici, dcn, process_is_granule=process_is_granule)
    grid = device_grid(config, _devices([4, 4]))
    processes = np.vectorize(lambda device: device.process_index)(grid)
    across = processes if dcn == {"a": 2} else processes.T
    assert across.tolist() == [[0] * 4, [1] * 4]


def test_cpu_slices_do_not_cut_across_processes() -> None:
    config = _config("ab", {"b": 4}, {"a": 3})
    with pytest.raises(
        MeshDoesNotFit, match=r"slices of 4 devices, but the processes hold \[6, 6\]"
    ):
        device_grid(config, _devices([6, 6]))


def test_process_granules_must_be_as_many_as_the_mesh_needs() -> None:
    config = _config("ab", {"b": 2}, {"a": 4}, process_is_granule=True)
    with pytest.raises(
        MeshDoesNotFit, match=r"\(unit: process\).*4 in number; here are 2 with 4, 4"
    ):
        device_grid(config, _devices([4, 4]))


def test_accelerators_cross_their_slices() -> None:
    config = _config("ab", {"a": 2}, {"b": 2})
    grid = device_grid(config, _devices([2, 2], by="slice_index", platform="gpu"))
    assert _ids(grid) == [[0, 2], [1, 3]]


def test_accelerators_of_one_slice_do_not_simulate_two() -> None:
    config = _config("ab", {"a": 2}, {"b": 2})
    with pytest.raises(MeshDoesNotFit, match=r"dcn\(b2\)·a2 .*\(unit: slice\).*here is 1 with 4"):
        device_grid(config, _devices([4], by="slice_index", platform="gpu"))


def _tpu_cube() -> list[Any]:
    return [
        Device(
            id=index,
            platform="tpu",
            device_kind="TPU v4",
            coords=(index % 4, index // 4 % 4, index // 16),
        )
        for index in range(64)
    ]


def test_physical_axes_are_not_split_unless_allowed() -> None:
    config = _config("ab", {"a": 2, "b": 32})
    with pytest.raises(
        MeshDoesNotFit, match=r"a2b32 cannot be laid out.*allow_split_physical_axes"
    ):
        device_grid(config, _tpu_cube())


def test_fewer_devices_of_several_processes_are_some_of_each():
    """A process without a device could take no part in what all of them do."""
    mesh = Mesh(np.array([Device(index, process_index=index // 4) for index in range(8)]), ("x",))
    assert [device.id for device in first_devices(mesh, 4).devices] == [0, 2, 4, 6]
    assert [device.id for device in first_devices(mesh, 3).devices] == [0, 2, 5]
    with pytest.raises(StateError, match=r"leave processes \[1\] of 2 without a device; give"):
        first_devices(mesh, 1)


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
