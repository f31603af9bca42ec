"""Sizes of the metadata that Orbax writes beside array values."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.config import ShardingEntry
from orbax_bench_core.plan.meshes import PlanMesh
from orbax_bench_core.plan.options import StorageOptions

if TYPE_CHECKING:
    from orbax_bench_core.plan.layout import ArrayLayout
    from orbax_bench_core.plan.trees import PlannedTree

FIXED_FILES: Final = 5
"""`_CHECKPOINT_METADATA`, `commit_success.txt`, `orbax.checkpoint`, `_METADATA` and `_sharding`."""

_ROOT_BYTES: Final = 264 + 53
"""Bytes of the files of the root; the second names the path, and is as long as that."""

_STRING_BYTES: Final = 16
_NUMBER_BYTES: Final = 8
_DATABASE_BYTES: Final = 480
"""Manifest, version node and B-tree node of one OCDBT database, without its keys."""
_KEY_BYTES: Final = 7
"""A key of a chunk with its reference, compressed, in a process's database and in the whole."""
_ARRAY_NODE_BYTES: Final = 8
"""Zarr's metadata of one array in the same nodes, compressed beside those of others."""

_ZARR2_DTYPES: Final = {
    "bool": "|b1",
    "int8": "|i1",
    "uint8": "|u1",
    **{f"int{bits}": f"<i{bits // 8}" for bits in (16, 32, 64)},
    **{f"uint{bits}": f"<u{bits // 8}" for bits in (16, 32, 64)},
    **{f"float{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    "complex64": "<c8",
    "complex128": "<c16",
}


def sizes(
    tree: PlannedTree, arrays: Sequence[ArrayLayout], mesh: PlanMesh, options: StorageOptions
) -> int:
    """Returns the bytes of all metadata of a save.

    Those of files with JSON are counted by making it. The nodes of OCDBT are compressed, and only
    estimated; on trees of several MiB they are below 0.1 %.
    """
    found = _ROOT_BYTES + _tree_metadata(tree, arrays, options) + _shardings(arrays, mesh)
    found += mesh.num_hosts * _array_metadatas(arrays)
    found += sum(_STRING_BYTES + len(path) for path in tree.strings)
    if options.use_ocdbt:
        return found + _nodes(tree, arrays, mesh)
    found += sum(_zarr(array.shape, array.chunk_shape, array.dtype, options) for array in arrays)
    number = _zarr((), (), "int64", options) + _NUMBER_BYTES + options.chunk_overhead
    return found + len(tree.numbers) * number


def _tree_metadata(
    tree: PlannedTree, arrays: Sequence[ArrayLayout], options: StorageOptions
) -> int:
    kinds: list[tuple[tuple[str | int, ...], dict[str, Any]]] = [
        (planned.path, {"value_type": "jax.Array", "write_shape": list(array.write_shape)})
        for planned, array in zip(tree.arrays, arrays, strict=True)
    ]
    kinds += [(path, {"value_type": "scalar"}) for path in tree.numbers]
    kinds += [(path, {"value_type": "string"}) for path in tree.strings]
    entries = {
        str(tuple(map(str, path))): {
            "key_metadata": [
                {"key": str(key), "key_type": 1 if isinstance(key, int) else 2} for key in path
            ],
            "value_metadata": value | {"skip_deserialize": False},
        }
        for path, value in kinds
    }
    whole = {
        "tree_metadata": entries,
        "use_ocdbt": options.use_ocdbt,
        "use_zarr3": options.use_zarr3,
        "store_array_data_equal_to_fill_value": True,
        "custom_metadata": None,
    }
    return len(json.dumps(whole))


def _array_metadatas(arrays: Sequence[ArrayLayout]) -> int:
    entries = [
        {
            "array_metadata": {
                "param_name": array.name,
                "write_shape": list(array.write_shape),
                "chunk_shape": list(array.chunk_shape),
                "ext_metadata": None,
            }
        }
        for array in arrays
    ]
    return len(json.dumps({"array_metadatas": entries}))


def _shardings(arrays: Sequence[ArrayLayout], mesh: PlanMesh) -> int:
    """Returns the bytes of `_sharding`, which lists every device of the mesh for every array."""
    found = 2
    for array in arrays:
        key = base64.urlsafe_b64encode(array.name.encode())
        found += len(key) + len('"":"",') + _sharding(mesh, array.spec)
    return found - 1


@functools.lru_cache(maxsize=4096)
def _sharding(mesh: PlanMesh, spec: tuple[ShardingEntry, ...]) -> int:
    described = {
        "sharding_type": "NamedSharding",
        "shape": list(mesh.sizes),
        "axis_names": list(mesh.axes),
        "axis_types": ["AxisType.Auto"] * len(mesh.axes),
        "partition_spec": [list(e) if isinstance(e, tuple) else e for e in spec],
        "device_mesh": {"mesh": 0},
    }
    text = json.dumps(described)
    return len(text) + text.count('"') - 1 + _devices(mesh)


@functools.lru_cache(maxsize=64)
def _devices(mesh: PlanMesh) -> int:
    r"""Returns the characters of nested lists of `{\"id\": 7}`, one for each device."""
    devices = mesh.num_devices
    digits: int = sum(max(0, devices - 10**power) for power in range(1, len(str(devices))))
    found = devices * len(r"{\"id\": 0}") + digits
    lists = 1
    for size in mesh.sizes:
        found += lists * (2 + 2 * (size - 1))
        lists *= size
    return found


def _zarr(shape: Sequence[int], chunk: Sequence[int], dtype: str, options: StorageOptions) -> int:
    """Returns the bytes of `zarr.json` or `.zarray`."""
    whole: dict[str, Any]
    if not options.use_zarr3:
        whole = {
            "chunks": list(chunk),
            "compressor": {"id": "zstd", "level": 1} if options.use_compression else None,
            "dimension_separator": ".",
            "dtype": _ZARR2_DTYPES.get(dtype, dtype),
            "fill_value": None,
            "filters": None,
            "order": "C",
            "shape": list(shape),
            "zarr_format": 2,
        }
        return len(json.dumps(whole, separators=(",", ":")))
    codecs: list[dict[str, Any]] = [{"configuration": {"endian": "little"}, "name": "bytes"}]
    inner = [*codecs]
    if options.use_compression:
        inner.append({"configuration": {"checksum": False, "level": 3}, "name": "zstd"})
    sharding = {
        "chunk_shape": list(chunk),
        "codecs": inner,
        "index_codecs": [*codecs, {"name": "crc32c"}],
    }
    whole = {
        "chunk_grid": {"configuration": {"chunk_shape": list(chunk)}, "name": "regular"},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"configuration": sharding, "name": "sharding_indexed"}],
        "data_type": dtype,
        "fill_value": _fill_value(dtype),
        "node_type": "array",
        "shape": list(shape),
        "zarr_format": 3,
    }
    return len(json.dumps(whole, separators=(",", ":")))


def _fill_value(dtype: str) -> Any:
    if dtype == "bool":
        return False
    if dtype.startswith("complex"):
        return [0.0, 0.0]
    return 0 if "int" in dtype else 0.0


def _nodes(tree: PlannedTree, arrays: Sequence[ArrayLayout], mesh: PlanMesh) -> int:
    """Estimates the nodes of all OCDBT databases: every key is in that of a process and in all."""
    keys = sum(array.num_chunks for array in arrays) + len(tree.numbers)
    names = _ARRAY_NODE_BYTES * (len(arrays) + len(tree.numbers))
    databases = min(mesh.num_hosts, keys) + 1
    # Each number has commits of its own, and each commit writes the root once more.
    commits = 3 * min(len(tree.numbers), 2)
    return databases * _DATABASE_BYTES + keys * _KEY_BYTES + names + commits * _DATABASE_BYTES
