"""Each option of `pytorch_dcp` changes what PyTorch does, or is refused."""

import json
import os

import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

import torch
import yaml
from safetensors.torch import save_file

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.pytorch_dcp import PyTorchDcp, PyTorchDcpOptions
from tests.support.processes import free_address, run_cli

pytestmark = pytest.mark.nightly  # which installs PyTorch

SIZE = 512 * 256 * 2 + 64 * 64 * 4
BYTES = "5_inventory/operation_bytes"


@pytest.fixture
def dcp(run):
    def one(**options):
        return run(PyTorchDcp, join_local_shards=True, **options)

    return one


def test_operations_are_those_of_save_restore(dcp):
    outcome = dcp()
    assert outcome.blocks == ["save_blocking", "save_background", "save", "load"]
    assert outcome.prepared == ["load"]
    assert outcome.verified
    assert outcome.value("save", BYTES) == outcome.value("load", BYTES) == SIZE


def test_upstreams_name_prevails():
    assert PyTorchDcpOptions(async_enabled=False, enable_async_save=True).asynchronous


@pytest.mark.parametrize("sync", [True, False])
def test_sync_files(dcp, monkeypatch, sync):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), fsync(file)))
    outcome = dcp(sync_files=sync, async_enabled=False)
    written = outcome.files("*.distcp") + outcome.files(".metadata")
    assert len(synced) == (len(written) if sync else 0)


def test_save_per_thread_copy_ahead_mb_reaches_the_writer(dcp, monkeypatch):
    from torch.distributed.checkpoint import FileSystemWriter

    writers, write = [], FileSystemWriter.write_data
    monkeypatch.setattr(
        FileSystemWriter, "write_data", lambda *given: (writers.append(given[0]), write(*given))[1]
    )
    dcp(save_per_thread_copy_ahead_mb=3, async_enabled=False)
    assert [writer.per_thread_copy_ahead for writer in writers] == [3 * 2**20]


@pytest.mark.parametrize("caching", [True, False])
def test_enable_plan_caching(dcp, monkeypatch, caching):
    from torch.distributed.checkpoint import SavePlanner

    monkeypatch.setattr(SavePlanner, "_cached_save_plan", {})
    monkeypatch.setattr(SavePlanner, "_cached_all_plans", {})
    dcp(enable_plan_caching=caching)
    dcp(enable_plan_caching=caching)
    assert bool(SavePlanner._cached_save_plan) is caching


def test_cache_staged_state_dict_needs_cuda(dcp):
    with pytest.raises(UnmetNeed, match="cache_staged_state_dict: true needs CUDA"):
        dcp(cache_staged_state_dict=True)


def test_enable_gcs_connector_is_refused(dcp):
    with pytest.raises(UnmetNeed, match="enable_gcs_connector: true needs Dataflux's connector"):
        dcp(enable_gcs_connector=True)


def test_what_was_damaged_on_storage_is_found(dcp, monkeypatch):
    from . import conftest

    def damage(pages, operation, checkpoint):
        (file,) = checkpoint.glob("*.distcp")
        content = bytearray(file.read_bytes())
        middle = max(range(len(content) - 4096), key=lambda at: len(set(content[at : at + 64])))
        content[middle] ^= 1
        file.write_bytes(content)

    monkeypatch.setattr(conftest.Pages, "prepare_load", damage)
    with pytest.raises((VerificationError, RuntimeError), match=r"different|crc32|PytorchStream"):
        dcp(single_file_per_rank=True, save_thread_count=1)


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    first = {"w": torch.arange(12.0).reshape(4, 3) / 8, "n": torch.tensor(3)}
    save_file(first, str(folder / "a.safetensors"))
    save_file({"b": torch.ones(5, dtype=torch.bfloat16)}, str(folder / "b.safetensors"))
    return str(folder)


def test_reference_checkpoint_path_is_saved_as_bfloat16(run, model):
    outcome = run(PyTorchDcp, spec=None, reference_checkpoint_path=model)
    assert outcome.verified
    assert outcome.value("save", BYTES) == 2 * (12 + 1 + 5)


def suite(**blocks):
    return {
        "suite_name": "s",
        "num_repeats": 2,
        "mesh_config": {"mesh_axes": ["data", "fsdp"], "ici_parallelism": {"data": 2, "fsdp": 2}},
        "checkpoint_config": {
            "spec": {
                "rows": {"dtype": "bfloat16", "shape": [64, 32], "sharding": ["fsdp"]},
                "swapped": {"dtype": "float32", "shape": [16], "sharding": [["fsdp", "data"]]},
                "replicated": {"dtype": "float32", "shape": [8, 8]},
                "count": {"dtype": "int32", "shape": []},
            }
        },
        **blocks,
    }


def start(tmp_path, suite, **environment):
    file = tmp_path / "suite.yaml"
    file.write_text(yaml.safe_dump(suite))
    words = ("run", file, "-o", tmp_path / "out", "--no-lock", "--no-limits")
    process = run_cli(*words, **environment)
    assert process.returncode == 0, process.stdout + process.stderr
    return [json.loads(path.read_text()) for path in tmp_path.glob("out/records/*/*/*.json")]


def test_four_processes_save_and_load_the_shards_that_orbax_would(tmp_path):
    records = start(
        tmp_path,
        suite(
            execution={"processes": 4, "warmups": 0},
            benchmarks=[
                {"generator": "pytorch_dcp", "options": {"async_enabled": [True, False]}},
                {"generator": "torch_save", "options": {}},
                {"generator": "pytorch_safetensors", "options": {}},
            ],
        ),
    )
    assert len(records) == 4 * 2 * 4
    assert {record["status"] for record in records} == {"passed"}
    assert all(record["state"]["verified"] == "saved" for record in records)
    files = {
        record["point_name"].partition("[")[0]: record["inventory"]["data"]["files"]
        for record in records
        if record["host"] == 0
    }
    # DCP: two halves of `rows`, four quarters of `swapped`, and what is replicated once.
    assert files == {"pytorch_dcp": 2 + 4 + 1 + 1, "torch_save": 4, "pytorch_safetensors": 4}


@pytest.mark.extended
def test_processes_meet_where_torchrun_says(tmp_path):
    host, _, port = free_address().rpartition(":")
    records = start(
        tmp_path,
        suite(
            execution={"processes": 4, "warmups": 0},
            num_repeats=1,
            benchmarks=[{"generator": "pytorch_dcp", "options": {}}],
        ),
        MASTER_ADDR=host,
        MASTER_PORT=port,
    )
    assert [record["status"] for record in records] == ["passed"] * 4
