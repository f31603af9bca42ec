"""A part of a mesh, for jobs that go on with another number of devices."""

from __future__ import annotations

from jax.sharding import Mesh

from orbax_bench_core.state.errors import StateError


def first_devices(mesh: Mesh, count: int) -> Mesh:
    """Returns the mesh that the first devices of another one form.

    Its longest axis becomes shorter; the others stay, so that whatever they shard stays as it is.

    Args:
        mesh: The whole mesh.
        count: How many of its devices to take.

    Raises:
        StateError: There are fewer devices, or the other axes do not divide `count`.
    """
    sizes = dict(mesh.shape)
    longest = max(sizes, key=lambda axis: sizes[axis])
    others = mesh.size // sizes[longest]
    if not 0 < count <= mesh.size or count % others:
        allowed = [others * length for length in range(1, sizes[longest] + 1)]
        raise StateError(
            f"the mesh {sizes} has {mesh.size} devices, and {count} of them form no mesh with the "
            f"same axes; give one of {allowed}, or a mesh_config with more devices"
        )
    axis = list(sizes).index(longest)
    index = tuple(
        slice(count // others) if position == axis else slice(None)
        for position in range(len(sizes))
    )
    return Mesh(mesh.devices[index], mesh.axis_names)
