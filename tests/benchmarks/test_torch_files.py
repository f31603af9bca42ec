"""`torch_save` and `pytorch_safetensors`: one file for each process, on disk or in a bucket."""

import json
import os

import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

import torch
from etils import epath

from orbax_bench_core.authoring import TestContext, UnmetNeed
from orbax_bench_core.benchmarks import torch_files
from orbax_bench_core.benchmarks.torch_files import (
    PyTorchSafetensors,
    TorchSave,
    TorchSaveOptions,
)
from orbax_bench_core.inventory import read_model
from tests.support.processes import run_cli

from .conftest import ARRAYS, SPEC

pytestmark = pytest.mark.nightly  # which installs PyTorch


@pytest.fixture
def save_pt(run):
    def one(**options):
        return run(TorchSave, join_local_shards=True, **options)

    return one


def test_one_file_holds_what_the_process_holds(save_pt):
    outcome = save_pt()
    assert outcome.blocks == ["save_blocking", "save", "load"]
    assert outcome.prepared == ["load"]
    assert outcome.verified
    (file,) = outcome.files("*")
    assert file.name == "model-00000-of-00001.pt"
    saved = torch.load(file, weights_only=True)
    assert set(saved) == {"array", "nested.replicated", "step"}
    assert saved["array"].shape == (512, 256)


@pytest.mark.parametrize("mmap", [True, False])
def test_mmap(save_pt, monkeypatch, mmap):
    given, load = [], torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **k: (given.append(k["mmap"]), load(*a, **k))[1])
    assert save_pt(mmap=mmap).verified
    assert given == [mmap]


def test_what_was_mapped_is_copied_out_of_its_file(tmp_path):
    file = tmp_path / "one.pt"
    torch.save({"w": torch.ones(1000), "step": 3}, file)
    found = torch_files._in_memory(torch.load(file, weights_only=True, mmap=True))
    file.write_bytes(b"\0" * file.stat().st_size)
    assert (found["w"].sum().item(), found["step"]) == (1000, 3)


def test_mmap_needs_local_storage(tmp_path):
    context = TestContext(
        pytree={}, path=epath.Path("gs://bucket/run"), options=TorchSaveOptions(mmap=True)
    )
    with pytest.raises(UnmetNeed, match="mmap: true needs local storage; this is gs://bucket"):
        TorchSave().test_fn(context)


@pytest.fixture
def save(run):
    def one(spec=ARRAYS, **options):
        return run(PyTorchSafetensors, spec=spec, join_local_shards=True, **options)

    return one


def test_the_file_is_one_that_orbax_reads(save):
    outcome = save()
    assert outcome.blocks == ["save_blocking", "save", "load"]
    assert outcome.prepared == ["load"]
    assert outcome.verified
    model = read_model(epath.Path(outcome.folder / "ckpt"))
    assert {array.name: (array.shape, array.dtype) for array in model.arrays} == {
        "array": ((512, 256), "bfloat16"),
        "nested.replicated": ((64, 64), "float32"),
    }


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("benchmark", [TorchSave, PyTorchSafetensors])
def test_sync_files(run, monkeypatch, sync, benchmark):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), fsync(file)))
    run(benchmark, spec=ARRAYS, join_local_shards=True, sync_files=sync)
    assert len(synced) == int(sync)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (SPEC, "'step', which is int"),
        ({"w": {"dtype": "complex64", "shape": [2]}}, "'w', which is complex64"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(save, spec, said):
    with pytest.raises(UnmetNeed, match=f"safetensors cannot hold {said}: leave it out"):
        save(spec=spec)


SUITE = """\
suite_name: remote
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 4]}}}
benchmarks:
- {generator: pytorch_dcp, options: {async_enabled: [true, false]}}
- {generator: torch_save, options: {}}
- {generator: pytorch_safetensors, options: {}}
"""


def test_all_of_them_save_to_a_bucket_and_load_from_it(emulator, tmp_path):
    (tmp_path / "suite.yaml").write_text(SUITE)
    done = run_cli(
        *("run", tmp_path / "suite.yaml", "-o", "gs://bench-bucket/out"),
        *("--no-lock", "--keep-data", "--no-limits"),
        environment=emulator,
        GOOGLE_CLOUD_PROJECT="p",
        GOOGLE_AUTH_TOKEN_FOR_TESTING="abc",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    bucket = tmp_path / "storage" / ".cloudstorage" / "bench-bucket" / "out"
    records = [json.loads(path.read_text()) for path in bucket.glob("records/*/*/*.json")]
    assert [record["state"]["verified"] for record in records] == ["saved"] * 4
    assert {path.suffix for path in bucket.glob("*/repeat_0/ckpt/*")} == {
        *(".distcp", "", ".pt", ".safetensors")
    }
