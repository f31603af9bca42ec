"""Each option of `torch_save` changes what PyTorch does."""

import os

import pytest

pytest.importorskip("torch", reason="needs PyTorch: make torch")

import torch
from etils import epath

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.support import pytorch
from orbax_bench_core.benchmarks.torch_save import TorchSave, TorchSaveOptions

pytestmark = pytest.mark.nightly  # which installs PyTorch


@pytest.fixture
def save(run):
    def one(**options):
        return run(TorchSave, join_local_shards=True, **options)

    return one


def test_one_file_holds_what_the_process_holds(save):
    outcome = save()
    assert outcome.blocks == ["save_blocking", "save", "load"]
    assert outcome.prepared == ["load"]
    assert outcome.verified
    (file,) = outcome.files("*")
    assert file.name == "model-00000-of-00001.pt"
    saved = torch.load(file, weights_only=True)
    assert set(saved) == {"array", "nested.replicated", "step"}
    assert saved["array"].shape == (512, 256)


@pytest.mark.parametrize("mmap", [True, False])
def test_mmap(save, monkeypatch, mmap):
    given, load = [], torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **k: (given.append(k["mmap"]), load(*a, **k))[1])
    assert save(mmap=mmap).verified
    assert given == [mmap]


def test_what_was_mapped_is_copied_out_of_its_file(tmp_path):
    file = tmp_path / "one.pt"
    torch.save({"w": torch.ones(1000), "step": 3}, file)
    found = pytorch.in_memory(torch.load(file, weights_only=True, mmap=True))
    file.write_bytes(b"\0" * file.stat().st_size)
    assert (found["w"].sum().item(), found["step"]) == (1000, 3)


def test_mmap_needs_local_storage(tmp_path):
    from orbax_bench_core.authoring import TestContext

    context = TestContext(
        pytree={}, path=epath.Path("gs://bucket/run"), options=TorchSaveOptions(mmap=True)
    )
    with pytest.raises(UnmetNeed, match="mmap: true needs local storage; this is gs://bucket"):
        TorchSave().test_fn(context)


@pytest.mark.parametrize("sync", [True, False])
def test_sync_files(save, monkeypatch, sync):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), fsync(file)))
    save(sync_files=sync)
    assert len(synced) == int(sync)
