"""Cost of a save for the training beside it, and training that saves at an interval."""

import itertools
import threading

import pytest

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks import interference
from orbax_bench_core.benchmarks.support.training import Training
from orbax_bench_core.measure import tail_of_steps

from .conftest import TIME

SPEC = {
    "sharded": {"dtype": "bfloat16", "shape": [2048, 512], "sharding": ["fsdp"]},
    "replicated": {"dtype": "float32", "shape": [64, 64]},
    "step": "int",
}
SMALL = {"steps_before": 4, "steps_after": 3, "matrix_size": 16}


@pytest.fixture
def repeat(run, make_mesh):
    def one(**options):
        given = {**SMALL, **options}
        return run(interference.TrainInterference, spec=SPEC, mesh=make_mesh(fsdp=8), **given)

    return one


def train(outcome, operation, metric):
    return outcome.value(operation, f"7_overhead/train_{metric}")


def test_measures_the_save_and_the_training_around_it(repeat):
    outcome = repeat()
    assert outcome.operations == {
        "steps_before",
        "save_blocking",
        "save_background",
        "save",
        "steps_during",
        "steps_after",
    }
    whole = outcome.value("save", TIME)
    parts = outcome.value("save_blocking", TIME) + outcome.value("save_background", TIME)
    assert parts <= whole == pytest.approx(parts, rel=0.05, abs=0.03)
    compiled = [key for key in outcome.metrics.results if key.startswith("steps_")]
    assert not [key for key in compiled if "8_jax" in key]
    assert outcome.verified


def test_what_is_lost_follows_from_the_other_samples(repeat):
    outcome = repeat()
    before = train(outcome, "steps_before", "step_mean_s")
    for phase in ("steps_during", "steps_after"):
        ratio = train(outcome, phase, "step_mean_s") / before
        assert train(outcome, phase, "step_inflation") == pytest.approx(ratio)
    steps, mean, inflation = (
        train(outcome, "steps_during", metric)
        for metric in ("steps", "step_mean_s", "step_inflation")
    )
    duration = max(steps * mean, outcome.value("save_background", TIME))
    lost = outcome.value("save_blocking", TIME) + duration * (1 - 1 / inflation)
    assert train(outcome, "save", "blocked_s") == outcome.value("save_blocking", TIME)
    assert train(outcome, "save", "lost_s") == pytest.approx(lost)
    assert train(outcome, "save", "lost_steps") == pytest.approx(lost / before)


@pytest.mark.slow
def test_training_goes_on_beside_a_save_that_is_slow(repeat, monkeypatch):
    from orbax.checkpoint import v1 as ocp

    save_async, stepped = ocp.save_async, threading.Event()
    steps_while = Training.steps_while

    class Slow:
        def __init__(self, response):
            self.response = response

        def result(self):
            self.response.result()
            assert stepped.wait(60)

    def counted(training, going, *, most):
        calls = itertools.count()

        def asked():
            if next(calls) == 40:
                stepped.set()
            return going()

        return steps_while(training, asked, most=most)

    monkeypatch.setattr(ocp, "save_async", lambda path, tree: Slow(save_async(path, tree)))
    monkeypatch.setattr(Training, "steps_while", counted)
    assert train(repeat(), "steps_during", "steps") >= 40


@pytest.mark.slow
def test_steps_after_may_be_none_and_matrices_have_the_size_asked_for(repeat, monkeypatch):
    made, prepare = [], Training.__init__

    def noted(training, tree, *, matrix_size):
        made.append(matrix_size)
        prepare(training, tree, matrix_size=matrix_size)

    monkeypatch.setattr(Training, "__init__", noted)
    outcome = repeat(steps_after=0, matrix_size=24)
    assert made == [24]
    assert "steps_after" not in outcome.operations
    assert train(outcome, "steps_after", "steps") == 0


@pytest.mark.slow
def test_a_state_that_was_trained_further_fails_the_repeat(repeat, monkeypatch):
    restart, restarts = Training.restart, itertools.count()

    def late(training):
        restart(training)
        if next(restarts):  # the second one precedes the save
            training.steps(1)

    monkeypatch.setattr(Training, "restart", late)
    with pytest.raises(VerificationError, match="sharded: different"):
        repeat()


@pytest.mark.slow
def test_a_failing_save_ends_the_training_and_the_repeat(repeat, monkeypatch):
    from orbax.checkpoint import v1 as ocp

    class Failing:
        def result(self):
            raise OSError("disk full")

    monkeypatch.setattr(ocp, "save_async", lambda path, tree: Failing())
    threads = threading.active_count()
    with pytest.raises(OSError, match="disk full"):
        repeat()
    assert threading.active_count() <= threads  # those of other tests may end meanwhile


FAST = {"train_steps": 5, "save_interval_steps": 2, "matrix_size": 8}


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [True, False])
def test_trains_saves_at_the_interval_and_restores_what_training_went_on_from(run, asynchronous):
    outcome = run(interference.CheckpointInterval, enable_async_checkpointing=asynchronous, **FAST)
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
