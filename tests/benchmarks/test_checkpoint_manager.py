"""What a `CheckpointManager` saves, keeps and deletes, in the benchmarks that offer it steps."""

import dataclasses

import numpy as np
import orbax.checkpoint as ocp
import pytest
from etils import epath

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import checkpoint_manager
from orbax_bench_core.benchmarks.support.saving import check_steps, open_checkpoint_manager

from .conftest import ARRAYS

SAVE = ["save_blocking", "save_background", "save"]


@pytest.mark.slow
def test_measures_a_save_and_a_restore(run):
    outcome = run(checkpoint_manager.CheckpointManager)
    assert outcome.blocks == [*SAVE, "restore"]
    assert outcome.prepared == ["restore"]
    assert outcome.verified


@pytest.mark.parametrize("held", [(0, 1), (0,), ()])
def test_a_manager_that_holds_other_steps_is_found(held):
    class Manager:
        def all_steps(self):
            return list(held)

    with pytest.raises(VerificationError, match=r"should hold the steps \[1\]; it holds"):
        check_steps(Manager(), [1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "value", "said"),
    [
        ("json_item", {"a": 2, "b": "test"}, r"json_item\.a: different"),
        ("np_random_key", np.random.RandomState(1).get_state(), r"np_random_key\.1: different"),
    ],
)
def test_a_wrong_item_is_found(run, monkeypatch, item, value, said):
    restore = ocp.CheckpointManager.restore

    def restore_wrong(*given, **named):
        restored = restore(*given, **named)
        names = ("pytree", "json_item", "np_random_key")
        return {**{name: restored[name] for name in names}, item: value}

    monkeypatch.setattr(ocp.CheckpointManager, "restore", restore_wrong)
    with pytest.raises(VerificationError, match=said):
        run(checkpoint_manager.CheckpointManager)


STEP = ["train_step", "save_blocking", "save_background", "save"]


@pytest.mark.slow
def test_trains_and_saves_every_step_and_restores_the_last(run):
    outcome = run(checkpoint_manager.CheckpointManagerPerf, train_steps=3)
    assert outcome.blocks == [*STEP * 3, "restore"]
    assert outcome.verified
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["2"]


@pytest.mark.slow
@pytest.mark.parametrize(("zarr3", "name"), [(True, "zarr.json"), (False, ".zarray")])
def test_defect_30_use_ocdbt_and_use_zarr3_act(run, zarr3, name):
    outcome = run(
        checkpoint_manager.CheckpointManagerPerf, train_steps=1, use_ocdbt=False, use_zarr3=zarr3
    )
    assert not outcome.files("manifest.ocdbt")
    assert {path.name for path in outcome.files("*zarr*")} == {name}


@pytest.mark.slow
def test_training_changes_what_is_saved(run, monkeypatch):
    saved = []
    save = ocp.CheckpointManager.save

    def noted(self, step, args):
        saved.append(float(args["pytree_item"].item["nested"]["replicated"][0, 0]))
        return save(self, step, args=args)

    monkeypatch.setattr(ocp.CheckpointManager, "save", noted)
    run(checkpoint_manager.CheckpointManagerPerf, train_steps=3)
    first, second, last = saved
    assert second == first + 1
    assert abs(last) < 0.1 < first  # the compiling step and the first one are undone


@pytest.mark.slow
def test_deletes_each_step_behind_the_last(run):
    outcome = run(checkpoint_manager.Deleter, max_to_keep=9, train_steps=3)
    assert outcome.blocks == [*SAVE, *SAVE, "delete", *SAVE, "delete"]
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["2"]
    assert outcome.verified


@pytest.mark.parametrize(
    "options", [{"train_steps": 3}, {"max_to_keep": 9, "train_steps": 3, "save_interval_steps": 3}]
)
def test_what_leaves_nothing_to_delete_is_said_before_anything_is_saved(run, tmp_path, options):
    with pytest.raises(UnmetNeed, match="deleter needs a checkpoint"):
        run(checkpoint_manager.Deleter, **options)
    assert list((tmp_path / "repeat_0").iterdir()) == []


def test_what_is_saved_and_what_is_skipped_have_names_of_their_own(run):
    outcome = run(checkpoint_manager.CheckpointManager, train_steps=3, save_interval_steps=2)
    assert outcome.blocks == [*SAVE, "skip", *SAVE, "restore"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"keep_period": 3}, {0, 3, 5}),
        ({"best_fn": "min"}, {4}),
        ({"best_fn": "max", "max_to_keep": 2}, {0, 1}),
        ({"best_fn": "min", "keep_period": 5}, {0, 4, 5}),
    ],
)
def test_what_a_manager_keeps(run, options, kept):
    outcome = run(checkpoint_manager.CheckpointManager, train_steps=6, **options)
    assert {int(path.name) for path in (outcome.folder / "steps").iterdir()} == kept
    assert outcome.verified


@pytest.mark.slow
@pytest.mark.parametrize("light", [True, False])
def test_a_manager_is_opened_again_over_what_it_kept(run, light):
    outcome = run(
        checkpoint_manager.CheckpointManager,
        train_steps=3,
        max_to_keep=2,
        lightweight_initialize=light,
    )
    assert outcome.blocks == [*SAVE * 3, "restore", "create_checkpoint_manager"]
    assert outcome.verified


@pytest.mark.slow
@pytest.mark.parametrize("use_ocdbt", [True, False])
def test_a_process_saves_all_that_it_holds_to_a_folder_of_its_own(run, use_ocdbt):
    outcome = run(
        checkpoint_manager.CheckpointManagerPerf,
        spec=ARRAYS,
        train_steps=2,
        use_ocdbt=use_ocdbt,
        enable_per_process_directory_creation=True,
    )
    assert [path.name for path in (outcome.folder / "steps" / "process_0").iterdir()] == ["1"]
    assert outcome.verified


def test_a_process_cannot_save_a_number_alone(run):
    with pytest.raises(UnmetNeed, match="leave out 'step', which is int"):
        run(checkpoint_manager.CheckpointManagerPerf, enable_per_process_directory_creation=True)


def test_an_option_that_an_earlier_orbax_lacks_is_refused_where_it_is_set(tmp_path, monkeypatch):
    @dataclasses.dataclass
    class Options:
        max_to_keep: int

    monkeypatch.setattr(ocp, "CheckpointManagerOptions", Options)
    monkeypatch.setattr(ocp, "CheckpointManager", lambda *given, options, **named: options)
    given = {"max_to_keep": 1, "lightweight_initialize": False}
    assert open_checkpoint_manager(epath.Path(tmp_path), **given).thing == Options(1)
    with pytest.raises(UnmetNeed, match="lightweight_initialize: true needs a later Orbax: orbax"):
        open_checkpoint_manager(epath.Path(tmp_path), **given | {"lightweight_initialize": True})


@pytest.mark.slow
def test_deletions_in_the_background_are_waited_for_in_the_end(run):
    outcome = run(
        checkpoint_manager.Deleter, max_to_keep=9, train_steps=3, enable_background_delete=True
    )
    assert outcome.blocks == [*SAVE, *SAVE, "delete", *SAVE, "delete", "close"]
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["2"]


@pytest.mark.slow
def test_checkpoints_are_moved_instead_of_deleted(run):
    outcome = run(checkpoint_manager.Deleter, max_to_keep=9, train_steps=3, todelete_subdir="old")
    assert {path.name for path in (outcome.folder / "steps" / "old").iterdir()} == {"0", "1"}


def test_a_place_in_a_bucket_needs_one(run):
    with pytest.raises(UnmetNeed, match="todelete_full_path needs an output directory on gs://"):
        run(checkpoint_manager.Deleter, max_to_keep=9, train_steps=3, todelete_full_path="old")


def test_the_manager_is_closed_whatever_happens(tmp_path, monkeypatch):
    closed = []
    close = ocp.CheckpointManager.close
    monkeypatch.setattr(
        ocp.CheckpointManager, "close", lambda self: (closed.append(1), close(self))
    )
    with pytest.raises(KeyError), open_checkpoint_manager(epath.Path(tmp_path) / "steps"):
        raise KeyError
    assert closed == [1]
