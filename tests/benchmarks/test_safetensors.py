"""The safetensors format, written, read and loaded."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.loads import SafetensorsLoad
from orbax_bench_core.benchmarks.support.safetensors import write_arrays
from orbax_bench_core.inventory import read_model
from orbax_bench_core.state import StateError
from orbax_bench_core.testing import run_benchmark
from tests.support.processes import run_cli

from .conftest import ARRAYS

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "float8_e5m2", "float8_e4m3fn"),
]


@pytest.fixture
def folder(tmp_path):
    return epath.Path(tmp_path)


@pytest.mark.slow
def test_every_dtype_comes_back(folder):
    tree = {name: jnp.arange(6).reshape(2, 3).astype(name) for name in DTYPES}
    write_arrays(folder, tree)
    found = {array.name: (array.shape, array.dtype) for array in read_model(folder).arrays}
    assert found == {name: ((2, 3), name) for name in DTYPES}


def test_the_bytes_are_where_the_header_says(folder):
    values = np.arange(10, dtype=np.float32)
    write_arrays(folder, {"a": jnp.ones(3, "int8"), "b": {"c": jnp.asarray(values)}})
    content = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    begin, end = header["b.c"]["data_offsets"]
    data = content[8 + length :]
    assert len(data) == end == 3 + 40
    assert np.array_equal(np.frombuffer(data[begin:end], "<f4"), values)


def test_a_dtype_that_the_format_lacks_cannot_be_written(folder):
    with pytest.raises(UnmetNeed, match="cannot hold 'w', which is complex64"):
        write_arrays(folder, {"w": jax.numpy.ones(2, "complex64")})


REQUESTS = "6_io/storage_reads_per_host_count"
BYTES = "6_io/file_bytes_read_per_host"
SIZE = 512 * 256 * 2 + 64 * 64 * 4


@pytest.fixture
def model(tmp_path, make_tree):
    write_arrays(epath.Path(tmp_path) / "model", make_tree(ARRAYS))
    return tmp_path / "model"


def test_without_a_path_the_data_are_written_first(run):
    outcome = run(SafetensorsLoad, spec=ARRAYS)
    assert outcome.blocks == outcome.prepared == ["load"]
    assert outcome.verified
    assert outcome.value("load", "5_inventory/operation_bytes") == SIZE
    assert outcome.value("load", BYTES) == SIZE


def test_a_load_in_the_background_has_a_part_that_blocks(run):
    outcome = run(SafetensorsLoad, spec=ARRAYS, load_async=True)
    assert outcome.blocks == ["load_blocking", "load"]
    assert outcome.verified


@pytest.mark.parametrize("name", [".", "model.safetensors"])
def test_checkpoint_path_is_a_directory_or_a_file(run, model, name):
    outcome = run(SafetensorsLoad, spec=ARRAYS, checkpoint_path=str(model / name))
    assert outcome.verified
    assert outcome.files("*") == []


def test_a_corrupt_file_is_found(run, model):
    file = model / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(VerificationError, match=r"nested\.replicated: different"):
        run(SafetensorsLoad, spec=ARRAYS, checkpoint_path=str(model))


@pytest.mark.slow
def test_sharding_config_path_from_the_command(run, model, tmp_path):
    file = tmp_path / "tp.json"
    file.write_text(run_cli("sharding", model, "--mesh", "tp=8").stdout)
    outcome = run(
        SafetensorsLoad,
        spec=ARRAYS,
        checkpoint_path=str(model),
        sharding_config_path=str(file),
        safetensors_max_over_read_ratio=1.0,
    )
    assert outcome.verified
    assert json.loads(file.read_text())["array"]["sharding"]["spec"] == [None, "tp"]


def test_safetensors_read_chunk_mb(run):
    whole = run(SafetensorsLoad, spec=ARRAYS)
    cut = run(SafetensorsLoad, spec=ARRAYS, safetensors_read_chunk_mb=0.0625)
    assert whole.value("load", REQUESTS) == 1
    assert cut.value("load", REQUESTS) == -(-SIZE // 65536)


def test_safetensors_max_over_read_ratio_is_checked_by_orbax(run):
    with pytest.raises(ValueError, match=r"max_over_read_ratio must be >= 1\.0"):
        run(SafetensorsLoad, spec=ARRAYS, safetensors_max_over_read_ratio=0.5)


def test_digests_paths(run, model, tmp_path):
    given = {"spec": None, "checkpoint_path": str(model)}
    run(SafetensorsLoad, **given, capture_digests_path=str(tmp_path / "digests"))
    run(SafetensorsLoad, **given, reference_digests_path=str(tmp_path / "digests"))
    assert (tmp_path / "digests" / "digests.json").exists()


def test_what_the_loader_cannot_do_is_refused(run):
    with pytest.raises(UnmetNeed, match="needs a loader that broadcasts"):
        run(SafetensorsLoad, spec=ARRAYS, use_load_and_broadcast=True)


def test_a_path_without_model_is_said(run, tmp_path):
    with pytest.raises(StateError, match="does not exist; give the directory of a checkpoint"):
        run(SafetensorsLoad, spec=None, checkpoint_path=str(tmp_path / "nothing"))


@pytest.mark.slow
def test_the_size_of_a_read_is_proved_by_the_number_of_requests(tmp_path):
    spec = {"a": {"dtype": "float32", "shape": [256, 64]}}
    options = {"safetensors_read_chunk_mb": [None, 0.01, 0.02]}
    blocks = {"options": options, "checkpoint": {"spec": spec}}
    found = {
        effect.asked: (effect.state, effect.proof)
        for outcome in run_benchmark("safetensors_load", str(tmp_path / "run"), **blocks)
        for effect in outcome.record.effects
        if effect.option == "safetensors_read_chunk_mb"
    }
    assert found == {
        None: (
            "not proved",
            "Orbax read 65536 bytes in 1 requests, none of which is a part of a block",
        ),
        0.01: ("in effect", "Orbax read 65536 bytes in 7 requests"),
        0.02: ("in effect", "Orbax read 65536 bytes in 4 requests"),
    }
