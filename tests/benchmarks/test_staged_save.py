"""Stages of a save; tests/execute/test_swept_options.py shows that their options take effect."""

import pytest
from orbax.checkpoint import v1 as ocp

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.staged_save import StagedSave, StagedSaveOptions
from orbax_bench_core.state import orbax_api

SAVE = ["save_blocking", "save_background", "save"]
BACKGROUND = {"background_keys": "array", "device_host_concurrent_gb": 0.001}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "dtype"), [({"save_dtype": "bfloat16"}, "bfloat16"), (BACKGROUND, "float32")]
)
def test_floating_point_numbers_are_stored_in_the_dtype_where_one_is_given(run, options, dtype):
    outcome = run(StagedSave, **options)
    saved = ocp.metadata(outcome.folder / "ckpt").metadata
    assert str(saved["nested"]["replicated"].dtype) == dtype
    assert outcome.verified
    assert outcome.blocks == [*SAVE, "load"]


@pytest.mark.slow
@pytest.mark.parametrize("deepcopy", [True, False])
def test_arrays_of_the_host_are_saved_and_come_back(run, deepcopy):
    outcome = run(StagedSave, host_arrays=True, deepcopy_host_arrays=deepcopy)
    assert outcome.verified


@pytest.mark.slow
def test_several_saves_are_measured_and_the_last_is_loaded(run):
    outcome = run(StagedSave, num_savings=2, regulator_max_gb=0.01, **BACKGROUND)
    assert outcome.blocks == [*SAVE, *SAVE, "load"]
    assert sorted(path.name for path in (outcome.folder / "ckpt").iterdir()) == ["0", "1"]


@pytest.mark.slow
def test_what_the_context_gets():
    context = StagedSaveOptions(
        device_host_concurrent_gb=0.5, timeout_secs=7, skip_sync_file_validations=True
    ).orbax_context()
    assert context.memory.transfer_concurrent_bytes == 2**29
    assert context.asynchronous.timeout_secs == 7
    assert context.file.skip_sync_file_validations


@pytest.mark.slow
def test_limits_that_orbax_refuses_are_named():
    options = StagedSaveOptions(device_host_concurrent_gb=1.0, regulator_max_gb=1.0)
    with pytest.raises(UnmetNeed, match=r"refuses regulator_max_gb: 1\.0: min_memory_limit_gib"):
        options.orbax_context()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "given", "needs"),
    [
        (
            "0.12.7",
            BACKGROUND | {"regulator_max_gb": 0.01},
            "regulator_max_gb: 0.01 needs .*8",
        ),
        ("0.12.4", {"deepcopy_host_arrays": False}, "deepcopy_host_arrays: false needs .*0.12.5"),
        ("0.12.2", {"atomicity": "commit_file"}, 'atomicity: "commit_file" needs .*0.12.3'),
        ("0.12.2", BACKGROUND, 'background_keys: "array" needs .*0.12.3'),
        ("0.12.2", {"enable_write_sharding_file": False}, None),
    ],
)
def test_what_an_earlier_orbax_lacks_is_refused_and_nothing_else(
    monkeypatch, release, given, needs
):
    monkeypatch.setattr(orbax_api, "installed", lambda: release)
    options = StagedSaveOptions(**given)
    if needs is None:
        assert not options.orbax_context().array.saving.enable_write_sharding_file
        return
    with pytest.raises(UnmetNeed, match=needs):
        options.orbax_context()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("save_dtype", "int8", "save_dtype must be one of bfloat16"),
        ("path_permission_mode", "rwx", "path_permission_mode must be octal digits"),
        ("background_keys", "(", r"background_keys '\(' is not a regular expression"),
        ("num_savings", 0, "num_savings must be 1 or more"),
        ("timeout_secs", 0, "timeout_secs must be 1 or more"),
    ],
)
def test_a_value_that_nothing_can_be_done_with_is_refused(option, value, said):
    with pytest.raises(ValueError, match=said):
        StagedSaveOptions(**{option: value})


@pytest.mark.parametrize(
    "given",
    [
        {"regulator_max_gb": 1.0},
        {"expected_surge_gb": 1.0},
        {"deepcopy_host_arrays": False},
        {"max_replicas_for_replica_parallel": 1},
        {"ocdbt_target_data_file_size": 1, "use_zarr3": False},
    ],
)
def test_a_combination_of_which_orbax_ignores_an_option_is_left_out(given):
    assert not StagedSaveOptions(**given).is_valid()
