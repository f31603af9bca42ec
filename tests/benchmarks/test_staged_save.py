"""`staged_save`: a budget for staging, and another dtype on storage."""

import pytest
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.benchmarks.staged_save import StagedSave, StagedSaveOptions


@pytest.mark.slow
def test_floating_point_numbers_are_stored_in_the_dtype_and_others_as_they_are(run):
    outcome = run(StagedSave, save_dtype="bfloat16")
    saved = ocp.metadata(outcome.folder / "ckpt").metadata
    assert str(saved["nested"]["replicated"].dtype) == "bfloat16"
    assert outcome.verified
    assert outcome.blocks == ["save_blocking", "save_background", "save", "load"]


@pytest.mark.slow
def test_without_a_dtype_everything_is_stored_as_it_is(run):
    outcome = run(StagedSave, device_host_concurrent_gb=0.001)
    saved = ocp.metadata(outcome.folder / "ckpt").metadata
    assert str(saved["nested"]["replicated"].dtype) == "float32"
    assert outcome.verified


@pytest.mark.slow
def test_the_budget_reaches_orbax():
    context = StagedSaveOptions(device_host_concurrent_gb=0.5).orbax_context()
    assert context.memory.transfer_concurrent_bytes == 2**29


def test_what_is_no_floating_point_dtype_is_refused():
    with pytest.raises(ValueError, match="save_dtype must be one of bfloat16"):
        StagedSaveOptions(save_dtype="int8")
