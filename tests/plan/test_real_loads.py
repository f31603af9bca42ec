"""Plans of loads, limits and memory beside what Orbax and TensorStore really do."""

import contextlib
import gc
import json
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest
from etils import epath
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from orbax_bench_core.config import CheckpointConfig
from orbax_bench_core.plan import (
    ReadArray,
    StorageOptions,
    options_of,
    plan_checkpoint,
    read_cost,
    read_mesh,
)
from orbax_bench_core.state import StateCache, make_context, orbax_api

pytestmark = pytest.mark.slow

SHAPE = (256, 512)
SLACK = 20_000
"""Bytes of metadata that a load reads beside chunks."""


def placed(sizes, spec):
    mesh = Mesh(
        np.array(jax.devices()[: np.prod(list(sizes.values()))]).reshape(*sizes.values()),
        list(sizes),
    )
    return NamedSharding(mesh, PartitionSpec(*spec))


def save(path, sizes, spec, **options):
    values = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    tree = {"w": jax.device_put(values, placed(sizes, spec))}
    context = {"use_compression": False, "use_replica_parallel": False, **options}
    with make_context(**context):
        orbax_api.save(epath.Path(path), tree)


def load(path, sizes, spec, **options):
    target = {"w": jax.ShapeDtypeStruct(SHAPE, "float32", sharding=placed(sizes, spec))}
    with make_context(**options):
        return jax.block_until_ready(orbax_api.load(epath.Path(path), target))


def bytes_read():
    import tensorstore

    found = tensorstore.experimental_collect_matching_metrics(
        "/tensorstore/kvstore/file/bytes_read"
    )
    return sum(value["value"] for metric in found for value in metric["values"])


@pytest.mark.parametrize("chunk", [None, 16384])
@pytest.mark.parametrize(
    ("saved", "loaded"),
    [
        (({"x": 8}, ("x",)), ({"x": 8}, ("x",))),
        (({"x": 8}, ("x",)), ({"x": 4}, (None, "x"))),
        (({"x": 2, "y": 4}, ("x", "y")), ({"x": 8}, ("x",))),
        (({"x": 4}, (None, "x")), ({"x": 2, "y": 4}, ("y", None))),
    ],
)
def test_a_load_reads_between_each_chunk_once_and_once_per_shard(tmp_path, saved, loaded, chunk):
    save(tmp_path / "5", *saved, chunk_byte_size=chunk)
    plan = plan_checkpoint(
        {"w": {"dtype": "float32", "shape": list(SHAPE), "sharding": list(saved[1])}},
        mesh=saved[0],
        options=StorageOptions(
            use_compression=False, use_replica_parallel=False, chunk_byte_size=chunk
        ),
    )
    (layout,) = plan.layout.arrays
    mesh = read_mesh(",".join(f"{axis}={size}" for axis, size in loaded[0].items()), None)
    cost = read_cost([ReadArray("w", SHAPE, 4, layout.chunk_shape, loaded[1])], mesh)
    before = bytes_read()
    load(tmp_path / "5", *loaded)
    read = bytes_read() - before
    assert 0.995 * cost.least[0] <= read <= 1.03 * cost.most[0] + SLACK


@pytest.fixture
def swept():
    """Has what a save that failed has left swept up here: Orbax lets go of coroutines unawaited."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gc.collect()


@pytest.mark.usefixtures("swept")
@pytest.mark.filterwarnings("ignore:coroutine 'Store:RuntimeWarning")
@pytest.mark.parametrize("what", ["save", "load"])
@pytest.mark.parametrize(("limit", "fails"), [(60_000, True), (65_536, True), (70_000, False)])
def test_a_limit_fails_where_the_plan_says_so(tmp_path, what, limit, fails):
    names = {"save": "save_concurrent_gb", "load": "restore_concurrent_gb"}
    plan = plan_checkpoint(
        {"w": {"dtype": "float32", "shape": list(SHAPE), "sharding": ["x"]}},
        mesh="x=8",
        options=StorageOptions(**{names[what]: limit / 2**30}),
    )
    assert [failure.split(":")[0] for failure in plan.failures] == [f"the {what} will fail"] * fails
    place = (tmp_path / "5", {"x": 8}, ("x",))
    expected = pytest.raises(Exception, match="more bytes than we reserved space for")
    with expected if fails else contextlib.nullcontext():
        if what == "save":
            save(*place, write_concurrent_bytes=limit)
        else:
            save(*place)
            load(*place, read_concurrent_bytes=limit)


PEAK = """
import json, pathlib, sys
import jax, numpy as np
from etils import epath
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax_bench_core.state import make_context, orbax_api

def status(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(l.split()[1]) for l in lines if l.startswith(name))

def peak(work):
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before

folder = epath.Path(sys.argv[1])
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
shape = (1024, 1024)

def tree(seed):
    values = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    return {f"w{i}": jax.device_put(values + i, sharding) for i in range(2)}

target = {f"w{i}": jax.ShapeDtypeStruct(shape, "float32", sharding=sharding) for i in range(2)}
with make_context(use_replica_parallel=False):
    orbax_api.save(folder / "warm", tree(0))
    del_me = jax.block_until_ready(orbax_api.load(folder / "warm", target))
    del del_me
    made = jax.block_until_ready(tree(1))
    saved = peak(lambda: orbax_api.save(folder / "5", made))
    loaded = peak(lambda: jax.block_until_ready(orbax_api.load(folder / "5", target)))
print(json.dumps([saved, loaded]))
"""


@pytest.mark.nightly
def test_no_more_memory_is_taken_than_the_plan_allows(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    saved, loaded = json.loads(done.stdout.splitlines()[-1])
    array = {"dtype": "float32", "shape": [1024, 1024], "sharding": ["x"]}
    memory = plan_checkpoint({"w0": array, "w1": array}, mesh="x=8").memory
    assert saved <= memory.save
    assert loaded <= memory.load


def num_bytes(path):
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


@pytest.mark.parametrize("zarr3", [True, False])
@pytest.mark.parametrize("ocdbt", [True, False])
def test_chunks_of_zeros_are_stored_as_well(tmp_path, ocdbt, zarr3):
    options = {"use_ocdbt": ocdbt, "use_zarr3": zarr3, "use_compression": False}
    with make_context(use_replica_parallel=False, **options):
        zeros = jax.device_put(np.zeros((512, 512), "float32"), placed({"x": 8}, ("x",)))
        orbax_api.save(epath.Path(tmp_path / "5"), {"w": zeros})
    spec = {"w": {"dtype": "float32", "shape": [512, 512], "sharding": ["x"]}}
    plan = plan_checkpoint(spec, mesh="x=8", options=options_of(options))
    assert plan.stored_bytes == pytest.approx(num_bytes(tmp_path / "5"), rel=0.03)


@pytest.mark.nightly
@pytest.mark.extended
def test_a_factory_is_planned_as_its_state_is_saved(tmp_path):
    pytest.importorskip("flax")
    from tests.state import nnx_models

    factory = f"{nnx_models.__name__}:Many"
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "fsdp"))
    options = {"use_ocdbt": False, "use_compression": False, "use_replica_parallel": False}
    with make_context(**options):
        state = StateCache().get(CheckpointConfig(nnx=factory), None, mesh)
        orbax_api.save(epath.Path(tmp_path / "5"), state.tree)
    plan = plan_checkpoint(factory, mesh={"data": 2, "fsdp": 4}, options=options_of(options))
    # Metadata of arrays so small have more bytes than these, and each chunk has an index of 20.
    chunks = [file for file in tmp_path.rglob("*") if file.is_file() and "c" in file.parts]
    values = sum(file.stat().st_size - 20 for file in chunks)
    assert plan.stored_bytes == pytest.approx(values, rel=0.05)
