"""`deleter`: what it deletes is gone, and measured."""

import orbax.checkpoint as ocp
import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.deleter import Deleter, DeleterOptions

SAVE = ["save_blocking", "save_background", "save"]


@pytest.mark.slow
def test_deletes_each_step_behind_the_last(run):
    outcome = run(Deleter, max_to_keep=9, train_steps=3)
    assert outcome.blocks == [*SAVE, *SAVE, "delete", *SAVE, "delete"]
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["2"]
    assert outcome.verified


@pytest.mark.slow
def test_save_interval_steps(run):
    outcome = run(Deleter, max_to_keep=9, train_steps=3, save_interval_steps=2)
    assert outcome.blocks == [*SAVE, "skip", *SAVE, "delete"]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_num_deletion_threads(run, monkeypatch, threads):
    seen = []
    make = ocp.CheckpointManager.__init__

    def noted(self, *arguments, **named):
        make(self, *arguments, **named)
        seen.append(self._checkpoint_deleter._path_deleter._num_threads)

    monkeypatch.setattr(ocp.CheckpointManager, "__init__", noted)
    run(Deleter, max_to_keep=9, train_steps=2, num_deletion_threads=threads)
    assert seen == [threads]


@pytest.mark.parametrize(
    "options", [{"train_steps": 3}, {"max_to_keep": 9, "train_steps": 3, "save_interval_steps": 3}]
)
def test_what_leaves_nothing_to_delete_is_said_before_anything_is_saved(run, tmp_path, options):
    with pytest.raises(UnmetNeed, match="deleter needs a checkpoint"):
        run(Deleter, **options)
    assert list((tmp_path / "repeat_0").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("save_interval_steps", 0),
        ("max_to_keep", 0),
        ("train_steps", 1),
        ("num_deletion_threads", 0),
    ],
)
def test_numbers_that_leave_nothing_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be {value + 1} or more"):
        DeleterOptions(**{name: value})
