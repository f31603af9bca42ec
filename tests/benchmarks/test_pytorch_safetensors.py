"""`pytorch_safetensors` writes files that others read, and says what it cannot hold."""

import os

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.pytorch_safetensors import PyTorchSafetensors
from orbax_bench_core.benchmarks.support.safetensors import read_arrays

from .conftest import ARRAYS, SPEC

pytest.importorskip("torch", reason="needs PyTorch: make torch")

pytestmark = pytest.mark.nightly  # which installs PyTorch


@pytest.fixture
def save(run):
    def one(spec=ARRAYS, **options):
        return run(PyTorchSafetensors, spec=spec, join_local_shards=True, **options)

    return one


def test_the_file_is_one_that_orbax_reads(save):
    from etils import epath

    outcome = save()
    assert outcome.blocks == ["save_blocking", "save", "load"]
    assert outcome.prepared == ["load"]
    assert outcome.verified
    assert read_arrays(epath.Path(outcome.folder / "ckpt")) == {
        "array": ([512, 256], "bfloat16"),
        "nested.replicated": ([64, 64], "float32"),
    }


@pytest.mark.parametrize("sync", [True, False])
def test_sync_files(save, monkeypatch, sync):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), fsync(file)))
    save(sync_files=sync)
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
