"""Small real checkpoints, saved once and copied for whoever damages one."""

import shutil

import jax
import numpy as np
import pytest
from etils import epath
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.state import make_context, orbax_api

FORMATS = {
    "ocdbt": {"use_ocdbt": True, "use_zarr3": True, "use_compression": True},
    "folders": {"use_ocdbt": False, "use_zarr3": True, "use_compression": False},
    "zarr2": {"use_ocdbt": False, "use_zarr3": False, "use_compression": True},
}


def make_tree():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "fsdp"))

    def array(shape, *spec, dtype="float32"):
        values = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        return jax.device_put(values, NamedSharding(mesh, PartitionSpec(*spec)))

    return {
        "params": {
            "w": array((64, 128), "fsdp", None),
            "b": array((128,)),
            "layers": [array((32, 8), "fsdp"), array((), dtype="float16")],
        },
        "step": 7,
        "name": "run",
    }


@pytest.fixture(scope="session")
def saved(once, tmp_path_factory):
    """Returns the path of a checkpoint in one of the formats; nobody may change it."""

    def make(name):
        path = tmp_path_factory.mktemp("saved") / name
        with make_context(**FORMATS[name], use_replica_parallel=False):
            orbax_api.save(epath.Path(path), make_tree())
        return path

    return lambda name: once(("inspection", name), lambda: make(name))


@pytest.fixture
def copied(saved, tmp_path):
    """Returns a copy of such a checkpoint."""
    return lambda name: shutil.copytree(saved(name), tmp_path / name)
