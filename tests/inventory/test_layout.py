"""Kinds of files, by name and place."""

import io
from pathlib import PurePosixPath
from typing import get_args

import pytest
import tensorstore

from orbax_bench_core.inventory.layout import ROLES, Kind, holds_only_nodes, kinds_of

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


@pytest.mark.parametrize(
    ("name", "beside", "kind"),
    [
        *((name, "a/.zarray", "zarr2_chunk") for name in ("a/0", "a/0.0", "a/12.3.4", "a/0/1")),
        *((name, "a/zarr.json", "zarr3_chunk") for name in ("a/c", "a/c/0", "a/c/3/11", "a/0.0")),
        *((name, "elsewhere/.zarray", "other") for name in ("a/0.0", "a/c/0", "b/0")),
        *((name, "a/.zarray", "other") for name in ("a/readme", "a/d/0", "a/x.0")),
        ("0.0", ".zarray", "zarr2_chunk"),
        (f"state/d/{HASH}", "state/manifest.ocdbt", "ocdbt_data"),
        (f"state/d/{HASH}", "manifest.ocdbt", "other"),
        (f"state/ocdbt.process_0/d/{HASH}", "of a save that was cut short", "ocdbt_data"),
        ("manifest.0000000000000001", "manifest.ocdbt", "ocdbt_manifest"),
    ],
)
def test_other_names_are_known_by_what_lies_beside_them(name, beside, kind):
    assert kind_of(name, beside) == kind


def test_every_kind_has_a_role():
    assert set(ROLES) == set(get_args(Kind))


NODE = bytes.fromhex("0cdb20de") + (20).to_bytes(8, "little") + b"n" * 8


def only_nodes(content):
    return holds_only_nodes(io.BytesIO(content), len(content))


@pytest.fixture
def written(tmp_path):
    """Writes values of these sizes into a database, and returns its files."""

    def write(*sizes):
        spec = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{tmp_path}/"}}
        store = tensorstore.KvStore.open(spec).result()
        with tensorstore.Transaction() as transaction:
            for index, size in enumerate(sizes):
                store.with_transaction(transaction)[f"key_{index}"] = b"v" * size
        return [path.read_bytes() for path in (tmp_path / "d").iterdir()]

    return write


def test_values_that_fit_into_the_index_leave_nothing_but_nodes(written):
    assert [only_nodes(content) for content in written(10, 20)] == [True]


def test_larger_values_are_data(written):
    assert not all(only_nodes(content) for content in written(10, 100_000))


def test_several_nodes_are_nodes():
    assert only_nodes(NODE + NODE)


@pytest.mark.parametrize(
    "content", [b"", b"v" * 40, NODE + b"v" * 40, b"v" * 40 + NODE, NODE[:-1], NODE[:4] + bytes(8)]
)
def test_anything_else_is_not(content):
    assert not only_nodes(content)
