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
