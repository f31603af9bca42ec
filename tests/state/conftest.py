"""Meshes over the simulated devices."""

from collections.abc import Callable

import jax
import numpy as np
import pytest
from jax.sharding import Mesh


@pytest.fixture(scope="session")
def make_mesh() -> Callable[..., Mesh]:
    """Builds a mesh from axis sizes over the first devices: `make_mesh(x=2, y=4)`."""

    def make(**sizes: int) -> Mesh:
        shape = tuple(sizes.values())
        devices = np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)
        return Mesh(devices, tuple(sizes))

    return make


@pytest.fixture(scope="session")
def mesh8(make_mesh: Callable[..., Mesh]) -> Mesh:
    """All eight devices on the axis `x`."""
    return make_mesh(x=8)
