"""What `save_restore` measures; tests/worker/test_effects.py shows what its options do."""

import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks.save_restore import SaveRestore, SaveRestoreOptions

from .conftest import SPEC, TIME


@pytest.mark.slow
def test_measures_the_guides_operations_and_exact_bytes(run):
    outcome = run(SaveRestore, spec={**SPEC, "name": "str"})
    assert outcome.operations == {"save", "save_blocking", "save_background", "load"}
    assert outcome.verified
    for operation in ("save", "load"):
        expected = 512 * 256 * 2 + 64 * 64 * 4
        assert outcome.value(operation, "5_inventory/operation_bytes") == expected


def test_defect_13_save_is_its_blocking_and_its_background_part(run):
    outcome = run(SaveRestore)
    whole, blocking, background = (
        outcome.value(operation, TIME) for operation in ("save", "save_blocking", "save_background")
    )
    assert blocking + background <= whole <= 1.05 * (blocking + background) + 0.001


@pytest.mark.parametrize("option", [{"use_ocdbt": False}, {"use_replica_parallel": False}])
def test_separate_folders_need_ocdbt_and_parallel_replicas(option):
    given = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    assert SaveRestoreOptions(**given).is_valid()
    assert not SaveRestoreOptions(**{**given, **option}).is_valid()


def test_a_wrong_restore_fails_the_repeat(run, monkeypatch):
    from orbax.checkpoint import v1 as ocp

    load = ocp.load

    def wrong(*given, **options):
        tree = load(*given, **options)
        return {**tree, "array": tree["array"] + 1}

    monkeypatch.setattr(ocp, "load", wrong)
    with pytest.raises(VerificationError, match="array: different"):
        run(SaveRestore)
