"""The tables of Orbax's attributes and defaults are those of the Orbax that is installed."""

import importlib.metadata
import operator

import pytest

from orbax_bench_core.analysis.best.orbax_code import ATTRIBUTES, RELEASE, as_code, as_suite

pytestmark = pytest.mark.slow


def test_defaults_are_those_that_are_installed():
    from orbax.checkpoint import v1 as ocp

    assert f"orbax-checkpoint {importlib.metadata.version('orbax-checkpoint')}" == RELEASE
    context = ocp.Context()
    found = {name: operator.attrgetter(each.path)(context) for name, each in ATTRIBUTES.items()}
    # None is taken for True except on Pathways.
    assert found.pop("use_replica_parallel") is None
    assert found == {
        name: each.default for name, each in ATTRIBUTES.items() if name != "use_replica_parallel"
    }


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_code_saves_and_loads_what_the_options_say(tmp_path, make_point, asynchronous):
    import jax
    import jax.numpy as jnp
    from etils import epath

    options = {
        "async_enabled": asynchronous,
        "use_ocdbt": False,
        "use_zarr3": False,
        "use_replica_parallel": False,
        "chunk_byte_size": 1024,
        "save_concurrent_gb": 1.0,
        "restore_concurrent_gb": 0.5,
    }
    point = make_point(options=options)
    tree = {"w": jnp.arange(1024, dtype=jnp.float64)}
    names = {
        "path": epath.Path(tmp_path / "ckpt"),
        "tree": tree,
        "target": {"w": jax.ShapeDtypeStruct((1024,), jnp.float64, sharding=tree["w"].sharding)},
    }
    exec(as_code(point), names)
    assert (names["restored"]["w"] == tree["w"]).all()
    assert not list((tmp_path / "ckpt").rglob("manifest.ocdbt"))
    assert names["context"].memory.read_concurrent_bytes == 2**29


def test_storage_and_host_memory_are_part_of_the_entry(make_point):
    from orbax_bench_core.config import Conditions

    point = make_point(storage="/data", conditions=Conditions(host_memory="fresh"))
    text = as_suite(point, "save_restore")
    assert 'storage: "/data"' in text
    assert "host_memory: fresh" in text


def test_the_code_stores_another_dtype(tmp_path, make_point):
    import jax
    import jax.numpy as jnp
    from etils import epath
    from orbax.checkpoint import v1 as ocp

    path = "orbax_bench_core.benchmarks.staged_save.StagedSave"
    point = make_point(benchmark=path, options={"save_dtype": "bfloat16"})
    tree = {"w": jnp.arange(64, dtype=jnp.float32) / 7, "n": jnp.arange(4, dtype=jnp.int32)}
    target = {
        name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
        for name, leaf in tree.items()
    }
    folder = epath.Path(tmp_path / "ckpt")
    exec(as_code(point), {"path": folder, "tree": tree, "target": target})
    saved = ocp.metadata(folder).metadata
    assert (str(saved["w"].dtype), str(saved["n"].dtype)) == ("bfloat16", "int32")
