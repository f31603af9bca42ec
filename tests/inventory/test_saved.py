"""Formats of saved trees, read from metadata."""

import json

import pytest
from etils import epath

from orbax_bench_core.inventory import read_saved_trees, store_spec

ZARR3 = {
    "shape": [64, 64],
    "data_type": "bfloat16",
    "zarr_format": 3,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [32, 64]}},
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [4, 64], "codecs": [{"name": "bytes"}]},
        }
    ],
}
ZARR2 = {
    "shape": [64],
    "chunks": [8],
    "compressor": {"id": "zstd", "level": 1},
    "dtype": "<f4",
    "zarr_format": 2,
}


@pytest.fixture
def write(tmp_path):
    """Writes the metadata of one array into a tree, and reads what is there."""

    def make(name, metadata, folder="ckpt/state"):
        array = tmp_path / folder / "w"
        array.mkdir(parents=True)
        (array / name).write_text(metadata if isinstance(metadata, str) else json.dumps(metadata))
        (tmp_path / folder / "_METADATA").write_text("{}")
        return read_saved_trees(epath.Path(tmp_path))

    return make


def test_zarr_3_has_the_chunks_of_its_inner_codec(write):
    (tree,) = write("zarr.json", ZARR3)
    (array,) = tree.arrays
    found = array.zarr
    assert (found.zarr_format, found.compressor, found.chunk_bytes) == (3, None, 4 * 64 * 2)
    assert (tree.ocdbt, tree.has_replica_folders, array.is_one_chunk) == (False, False, None)


def test_zarr_2_names_its_compressor(write):
    (tree,) = write(".zarray", ZARR2)
    (array,) = tree.arrays
    found = array.zarr
    assert (found.zarr_format, found.compressor, found.chunk_bytes) == (2, "zstd", 32)


@pytest.mark.parametrize("metadata", ["{", "{}", '{"dtype": 3}'])
def test_damaged_metadata_are_left_out(write, metadata):
    (tree,) = write(".zarray", metadata)
    assert [array.zarr for array in tree.arrays if array.zarr] == []


def test_an_unfinished_save_is_no_tree(write):
    assert write(".zarray", ZARR2, folder="ckpt.orbax-checkpoint-tmp-7/state") == ()


def test_nothing_there_is_no_tree(tmp_path):
    assert read_saved_trees(epath.Path(tmp_path) / "absent") == ()


def test_a_bucket_is_reached_by_its_own_driver():
    found = store_spec("gs://bucket/some/folder")
    assert found == {"driver": "gcs", "bucket": "bucket", "path": "some/folder/"}
