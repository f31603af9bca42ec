"""`checkpoint_interval`: training that saves at an interval, and the tail of its steps."""

import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks.checkpoint_interval import (
    CheckpointInterval,
    CheckpointIntervalOptions,
    _check_steps,
)
from orbax_bench_core.measure import tail_of_steps

FAST = {"train_steps": 5, "save_interval_steps": 2, "matrix_size": 8}


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [True, False])
def test_trains_saves_at_the_interval_and_restores_what_training_went_on_from(run, asynchronous):
    outcome = run(CheckpointInterval, enable_async_checkpointing=asynchronous, **FAST)
    assert outcome.blocks == ["train", "save_end", "restore"]
    assert outcome.verified
    assert [path.name for path in (outcome.folder / "steps").iterdir()] == ["4"]
    assert outcome.value("train", "7_overhead/train_steps") == 5
    longest = outcome.value("train", "7_overhead/train_step_max_s")
    assert longest >= outcome.value("train", "7_overhead/train_step_p99_s")


def test_the_tail_shows_what_the_median_hides():
    found = {reading.metric: reading.value for reading in tail_of_steps([1.0] * 9 + [11.0])}
    assert found["7_overhead/train_step_median_s"] == 1.0
    assert found["7_overhead/train_step_max_s"] == 11.0
    assert found["7_overhead/train_save_share"] == 0.5


def test_a_manager_that_holds_other_steps_is_found():
    class Manager:
        def all_steps(self):
            return [2]

    with pytest.raises(VerificationError, match=r"should hold the steps \[4\]; it holds \[2\]"):
        _check_steps(Manager(), 4, CheckpointIntervalOptions(**FAST))
