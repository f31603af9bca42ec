"""Kinds of files, by name and place."""

from pathlib import PurePosixPath
from typing import get_args

import pytest

from orbax_bench_core.inventory.layout import ROLES, Kind, kinds_of

HASH = "0123456789abcdef0123456789abcdef"


def kind_of(name, *others):
    return kinds_of(PurePosixPath(file) for file in (name, *others))[PurePosixPath(name)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_METADATA", "orbax_metadata"),
        ("state/_sharding", "orbax_metadata"),
        ("state/_strings.json", "orbax_metadata"),
        ("_CHECKPOINT_METADATA", "orbax_metadata"),
        ("state/array_metadatas/process_0", "orbax_metadata"),
        ("descriptor/descriptor.pbtxt", "orbax_metadata"),
        ("commit_success.txt", "commit"),
        ("orbax.checkpoint", "commit"),
        ("state/manifest.ocdbt", "ocdbt_manifest"),
        ("a/.zarray", "zarr2_metadata"),
        (".zgroup", "zarr2_metadata"),
        ("a/zarr.json", "zarr3_metadata"),
        ("model.safetensors", "safetensors_data"),
        ("model.safetensors.index.json", "safetensors_metadata"),
        ("__0_0.distcp", "torch_data"),
        ("model.pt", "torch_data"),
        (".metadata", "torch_metadata"),
        ("notes.txt", "other"),
    ],
)
def test_names_with_a_meaning_are_enough(name, kind):
    assert kind_of(name) == kind


@pytest.mark.parametrize("name", ["a/0", "a/0.0", "a/12.3.4", "a/0/1"])
def test_zarr2_chunks_lie_beside_their_zarray(name):
    assert kind_of(name, "a/.zarray") == "zarr2_chunk"


@pytest.mark.parametrize("name", ["a/c", "a/c/0", "a/c/3/11", "a/0.0"])
def test_zarr3_chunks_lie_beside_their_zarr_json(name):
    assert kind_of(name, "a/zarr.json") == "zarr3_chunk"


@pytest.mark.parametrize("name", ["a/0.0", "a/c/0", "b/0"])
def test_a_chunk_without_an_array_is_none(name):
    assert kind_of(name, "b/notes.txt", "elsewhere/.zarray") == "other"


def test_an_array_in_the_root_has_chunks_too():
    assert kind_of("0.0", ".zarray") == "zarr2_chunk"


@pytest.mark.parametrize("name", ["a/readme", "a/d/0", "a/x.0"])
def test_what_is_no_chunk_key_is_no_chunk(name):
    assert kind_of(name, "a/.zarray") == "other"


def test_ocdbt_files_lie_in_d_beside_the_manifest():
    assert kind_of(f"state/d/{HASH}", "state/manifest.ocdbt") == "ocdbt_data"


def test_ocdbt_files_of_a_save_that_was_cut_short_have_no_manifest():
    assert kind_of(f"state/ocdbt.process_0/d/{HASH}") == "ocdbt_data"


def test_a_hash_elsewhere_is_no_ocdbt_file():
    assert kind_of(f"state/d/{HASH}") == "other"


def test_a_database_may_have_numbered_manifests():
    assert kind_of("manifest.0000000000000001", "manifest.ocdbt") == "ocdbt_manifest"


def test_every_kind_has_a_role():
    assert set(ROLES) == set(get_args(Kind))
