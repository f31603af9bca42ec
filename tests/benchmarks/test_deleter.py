"""`deleter`: what it deletes is gone, and measured."""

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.deleter import Deleter

SAVE = ["save_blocking", "save_background", "save"]


@pytest.mark.slow
def test_deletes_each_step_behind_the_last(run):
    outcome = run(Deleter, max_to_keep=9, train_steps=3)
    assert outcome.blocks == [*SAVE, *SAVE, "delete", *SAVE, "delete"]
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["2"]
    assert outcome.verified


@pytest.mark.parametrize(
    "options", [{"train_steps": 3}, {"max_to_keep": 9, "train_steps": 3, "save_interval_steps": 3}]
)
def test_what_leaves_nothing_to_delete_is_said_before_anything_is_saved(run, tmp_path, options):
    with pytest.raises(UnmetNeed, match="deleter needs a checkpoint"):
        run(Deleter, **options)
    assert list((tmp_path / "repeat_0").iterdir()) == []
