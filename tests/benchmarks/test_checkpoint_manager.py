"""Each option of `checkpoint_manager` decides what is saved and kept."""

import numpy as np
import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import checkpoint_manager
from orbax_bench_core.benchmarks.checkpoint_manager import (
    CheckpointManager,
    CheckpointManagerOptions,
)

SAVE = ["save_blocking", "save_background", "save"]


def steps(outcome):
    return sorted(int(path.name) for path in (outcome.folder / "steps").iterdir())


@pytest.mark.slow
def test_measures_a_save_and_a_restore(run):
    outcome = run(CheckpointManager)
    assert outcome.blocks == [*SAVE, "restore"]
    assert outcome.prepared == ["restore"]
    assert outcome.verified


@pytest.mark.slow
def test_async_enabled(run):
    outcome = run(CheckpointManager, async_enabled=False)
    assert outcome.blocks == ["save_blocking", "save", "restore"]
    assert outcome.verified


@pytest.mark.slow
def test_every_item_is_saved(run):
    saved = {path.name for path in (run(CheckpointManager).folder / "steps" / "0").iterdir()}
    assert saved >= {"pytree", "json_item", "np_random_key"}


@pytest.mark.slow
def test_train_steps(run):
    assert run(CheckpointManager, train_steps=3).blocks == [*SAVE * 3, "restore"]


@pytest.mark.slow
def test_save_interval_steps(run):
    outcome = run(CheckpointManager, train_steps=4, save_interval_steps=2, max_to_keep=9)
    assert outcome.blocks == [*SAVE, "skip", *SAVE, "skip", "restore"]
    assert steps(outcome) == [0, 2]


@pytest.mark.slow
@pytest.mark.parametrize(("most", "kept"), [(1, [3]), (2, [2, 3]), (9, [0, 1, 2, 3])])
def test_max_to_keep(run, most, kept):
    assert steps(run(CheckpointManager, train_steps=4, max_to_keep=most)) == kept


class Holding:
    """A manager that holds these steps."""

    def __init__(self, *steps):
        self.steps = steps

    def all_steps(self):
        return list(self.steps)


@pytest.mark.parametrize("held", [(0, 1), (0,), ()])
def test_a_manager_that_holds_other_steps_is_found(held):
    with pytest.raises(VerificationError, match=r"should hold the steps \[1\]; it holds"):
        checkpoint_manager._check_steps(Holding(*held), [0, 1], CheckpointManagerOptions())


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
        run(CheckpointManager)


def test_data_are_needed(run):
    with pytest.raises(UnmetNeed, match="something to save"):
        run(CheckpointManager, spec=None)


@pytest.mark.parametrize("name", ["save_interval_steps", "max_to_keep", "train_steps"])
def test_numbers_that_leave_nothing_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be 1 or more"):
        CheckpointManagerOptions(**{name: 0})
