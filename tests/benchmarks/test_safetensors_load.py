"""`safetensors_load`: each option reaches Orbax's loader, or is refused."""

import json
import subprocess
import sys

import pytest
from etils import epath

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.safetensors_load import SafetensorsLoad
from orbax_bench_core.benchmarks.support.safetensors import write_arrays
from orbax_bench_core.state import StateError

from .conftest import ARRAYS

READS, REQUESTS, BYTES = (
    f"6_io/{name}"
    for name in (
        "file_reads_per_host_count",
        "storage_reads_per_host_count",
        "file_bytes_read_per_host",
    )
)
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
@pytest.mark.slow
def test_sharding_config_path_from_the_command(run, model, tmp_path):
    file = tmp_path / "tp.json"
    command = (
        sys.executable,
        "-m",
        "orbax_bench_core.cli",
        "sharding",
        str(model),
        "--mesh",
        "tp=8",
    )
    file.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
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


def test_nothing_to_load_is_said(run):
    with pytest.raises(UnmetNeed, match="give checkpoint_path"):
        run(SafetensorsLoad, spec=None)


def test_a_path_without_model_is_said(run, tmp_path):
    with pytest.raises(StateError, match="cannot be read by Orbax"):
        run(SafetensorsLoad, spec=None, checkpoint_path=str(tmp_path / "nothing"))
