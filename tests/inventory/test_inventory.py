"""Inventory of a checkpoint on storage."""

import shutil

import jax
import numpy
import pytest
from etils import epath
from etils.epath import backend
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from jax.sharding import NamedSharding, PartitionSpec
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.inventory.inventory import Inventory, take_inventory

MIB = 2**20
HASH = "0123456789abcdef0123456789abcdef"
LAYOUTS = {"ocdbt_zarr3": (True, True), "ocdbt_zarr2": (True, False)} | {
    "zarr3": (False, True),
    "zarr2": (False, False),
}
SHARD_BYTES = 128 * 2**10  # of values that do not compress


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """The same state, saved by Orbax in each layout: an array in 8 shards, numbers and a text."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    values = numpy.random.default_rng(0).integers(0, 256, (8, SHARD_BYTES), dtype=numpy.uint8)
    tree = {
        "w": jax.device_put(values, NamedSharding(mesh, PartitionSpec("x"))),
        "step": 3,
        "name": "text",
    }
    folder = tmp_path_factory.mktemp("layouts")
    for name, (use_ocdbt, use_zarr3) in LAYOUTS.items():
        context = ocp.Context()
        context.array.saving.use_ocdbt = use_ocdbt
        context.array.saving.use_zarr3 = use_zarr3
        with ocp.Context(context=context):
            ocp.save(epath.Path(folder / name), tree)
    return folder


@pytest.fixture
def inventory_of(tmp_path):
    """Takes the inventory of files of these sizes, in bytes; they are holes, not data."""

    def take(sizes):
        for name, size in sizes.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(size)
        return take_inventory(epath.Path(tmp_path))

    return take


class Bucket(DirFileSystem):
    """A local folder that fsspec takes for a bucket: like gcsfs, it answers without a scheme."""

    def _join(self, path):
        return super()._join(path.removeprefix("gs://"))


@pytest.fixture
def bucket(tmp_path, monkeypatch):
    """The folder behind `gs://bucket`."""
    filesystem = Bucket(path=str(tmp_path), fs=LocalFileSystem())
    monkeypatch.setattr(backend._FileSystemSpecBackend, "fs", lambda self, path: filesystem)
    monkeypatch.setenv("FSSPEC_GCS_TOKEN", "anon")  # the folder asks for no credentials
    return tmp_path / "bucket"


def test_files_in_a_bucket_are_found(bucket, checkpoints):
    shutil.copytree(checkpoints / "ocdbt_zarr3", bucket / "ckpt")
    local = take_inventory(epath.Path(checkpoints / "ocdbt_zarr3"))
    assert take_inventory(epath.Path("gs://bucket/ckpt")) == local


def test_a_checkpoint_may_be_one_file(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x" * 10)
    (tmp_path / "other.safetensors").write_bytes(b"x" * 99)
    found = take_inventory(epath.Path(tmp_path) / "model.safetensors")
    assert (found.total_bytes, found.file_count) == (10, 1)


def test_a_folder_that_is_not_there_is_empty(tmp_path):
    found = take_inventory(epath.Path(tmp_path / "missing"))
    assert found == Inventory(total_bytes=0, file_count=0, largest_bytes=0)


@pytest.mark.parametrize(
    ("layout", "kinds"),
    [
        ("ocdbt_zarr3", {"ocdbt_data", "ocdbt_index", "ocdbt_manifest"}),
        ("ocdbt_zarr2", {"ocdbt_data", "ocdbt_index", "ocdbt_manifest"}),
        ("zarr3", {"zarr3_chunk", "zarr3_metadata"}),
        ("zarr2", {"zarr2_chunk", "zarr2_metadata"}),
    ],
)
def test_defect_18_every_file_that_orbax_writes_is_known_by_its_layout(checkpoints, layout, kinds):
    found = take_inventory(epath.Path(checkpoints / layout))
    assert found.other.files == 0
    assert set(found.kinds) == kinds | {"orbax_metadata", "commit"}
    assert found.data.num_bytes == pytest.approx(8 * SHARD_BYTES, rel=0.02)
    if "ocdbt" in layout:  # what it commits on the way is no data
        assert found.smallest_data_bytes >= SHARD_BYTES
    for groups in (found.kinds.values(), (found.data, found.metadata, found.other)):
        assert sum(group.files for group in groups) == found.file_count
        assert sum(group.num_bytes for group in groups) == found.total_bytes


def test_largest_smallest_and_small_ones_are_of_data_files_alone(inventory_of):
    found = inventory_of({"a/zarr.json": 100, "a/c/0": MIB, "a/c/1": MIB - 1, "_METADATA": 2 * MIB})
    assert (found.smallest_data_bytes, found.largest_data_bytes) == (MIB - 1, MIB)
    assert (found.largest_bytes, found.small_data_files) == (2 * MIB, 1)


def test_defect_18_metadata_files_never_make_a_checkpoint_warn(inventory_of):
    files = {f"array_metadatas/process_{host}": 300 for host in range(50)}
    found = inventory_of({**files, "manifest.ocdbt": 100, f"d/{HASH}": 100 * MIB})
    assert found.warning is None


def test_defect_18_a_small_checkpoint_never_warns(inventory_of):
    chunks = {f"a/0.{index}": MIB // 2 for index in range(100)}
    assert inventory_of({"a/.zarray": 100, **chunks}).warning is None


def test_many_small_data_files_of_a_large_checkpoint_warn(inventory_of):
    chunks = {f"a/0.{index}": MIB // 2 for index in range(128)}
    warning = inventory_of({"a/.zarray": 100, **chunks}).warning
    assert warning is not None
    assert warning.startswith("128 of 128 data files (100 %) are smaller than 1 MiB: use OCDBT")


def test_a_file_that_vanishes_meanwhile_does_not_count(inventory_of, tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert inventory_of({"a/.zarray": 100}).file_count == 1
