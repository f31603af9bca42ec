"""`checkpoint_manager_perf`: the storage format is the one that is asked for."""

import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks import checkpoint_manager_perf
from orbax_bench_core.benchmarks.checkpoint_manager_perf import (
    CheckpointManagerPerf,
)

STEP = ["train_step", "save_blocking", "save_background", "save"]


@pytest.mark.slow
def test_trains_and_saves_every_step_and_restores_the_last(run):
    outcome = run(CheckpointManagerPerf, train_steps=3)
    assert outcome.blocks == [*STEP * 3, "restore"]
    assert outcome.verified
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["2"]


@pytest.mark.slow
@pytest.mark.parametrize("ocdbt", [True, False])
def test_defect_30_use_ocdbt_acts(run, ocdbt):
    outcome = run(CheckpointManagerPerf, train_steps=1, use_ocdbt=ocdbt)
    assert bool(outcome.files("manifest.ocdbt")) is ocdbt


@pytest.mark.slow
@pytest.mark.parametrize(("zarr3", "name"), [(True, "zarr.json"), (False, ".zarray")])
def test_defect_30_use_zarr3_acts(run, zarr3, name):
    outcome = run(CheckpointManagerPerf, train_steps=1, use_ocdbt=False, use_zarr3=zarr3)
    assert {path.name for path in outcome.files("*zarr*")} == {name}


@pytest.mark.slow
def test_training_changes_what_is_saved(run, monkeypatch):
    saved = []
    save = ocp.CheckpointManager.save

    def noted(self, step, args):
        saved.append(float(args["pytree_item"].item["nested"]["replicated"][0, 0]))
        return save(self, step, args=args)

    monkeypatch.setattr(ocp.CheckpointManager, "save", noted)
    run(CheckpointManagerPerf, train_steps=3)
    first, second, last = saved
    assert second == first + 1
    assert abs(last) < 0.1 < first  # the compiling step and the first one are undone


@pytest.mark.parametrize("held", [[0, 1], [0], []])
def test_a_manager_that_holds_other_steps_is_found(held):
    class Manager:
        def all_steps(self):
            return held

    with pytest.raises(VerificationError, match="should hold only step 1; it holds"):
        checkpoint_manager_perf._check_steps(Manager(), 1)
