"""Cost of a save for the training beside it."""

import itertools
import math
import threading

import jax
import pytest
from etils import epath

from orbax_bench_core.authoring import TestContext, VerificationError
from orbax_bench_core.benchmarks.support.training import Training
from orbax_bench_core.benchmarks.train_interference import (
    TrainInterference,
    TrainInterferenceOptions,
)
from orbax_bench_core.config import CheckpointConfig, MeshConfig
from orbax_bench_core.state import build_mesh, check_digest, digest, generate

SPEC = {
    "sharded": {"dtype": "bfloat16", "shape": [2048, 512], "sharding": ["fsdp"]},
    "replicated": {"dtype": "float32", "shape": [64, 64]},
    "step": "int",
}
SMALL = {"steps_before": 4, "steps_after": 3, "matrix_size": 16}
TRAIN = "7_overhead/train_"


class Outcome:
    """What one repeat measured."""

    def __init__(self, metrics, restored):
        self.values = {key: value for key, (value, _) in metrics.results.items()}
        self.restored = restored

    def seconds(self, operation):
        return self.values[f"{operation}_0_basics/time_s"]

    def train(self, operation, metric):
        return self.values[f"{operation}_{TRAIN}{metric}"]

    @property
    def operations(self):
        suffix = "_0_basics/time_s"
        return {key.removesuffix(suffix) for key in self.values if key.endswith(suffix)}

    @property
    def train_metrics(self):
        return {tuple(key.split(f"_{TRAIN}")) for key in self.values if TRAIN in key}


@pytest.fixture(scope="module")
def tree():
    mesh = build_mesh(MeshConfig(mesh_axes=("fsdp",), ici_parallelism={"fsdp": 8}))
    return generate(CheckpointConfig.model_validate({"spec": SPEC}).spec, seed=0, mesh=mesh)


@pytest.fixture
def repeat(tree, tmp_path):
    repeats = itertools.count()

    def run(**options):
        folder = tmp_path / f"repeat_{next(repeats)}"
        folder.mkdir()
        expected, restored = digest(tree), []

        def verify(found, _):
            restored.append(found)
            check_digest(found, expected)

        context = TestContext(
            pytree=tree,
            path=epath.Path(folder),
            options=TrainInterferenceOptions(**{**SMALL, **options}),
            verifier=verify,
        )
        return Outcome(TrainInterference().test_fn(context).metrics, restored)

    return run


@pytest.fixture(scope="module")
def measured(tree, tmp_path_factory):
    """One repeat that several tests look at."""
    context = TestContext(
        pytree=tree,
        path=epath.Path(tmp_path_factory.mktemp("repeat")),
        options=TrainInterferenceOptions(**SMALL),
    )
    return Outcome(TrainInterference().test_fn(context).metrics, [])


def test_measures_the_save_and_the_training_around_it(measured):
    assert measured.operations == {
        "steps_before",
        "save_blocking",
        "save_background",
        "save",
        "steps_during",
        "steps_after",
    }


def test_every_metric_is_there(measured):
    phases = {
        (phase, metric)
        for phase in ("steps_before", "steps_during", "steps_after")
        for metric in ("steps", "step_median_s", "step_mean_s", "step_inflation")
    }
    assert measured.train_metrics == phases - {("steps_before", "step_inflation")} | {
        ("save", "blocked_s"),
        ("save", "lost_s"),
        ("save", "lost_steps"),
    }


def test_save_is_its_blocking_and_its_background_part(measured):
    whole = measured.seconds("save")
    parts = measured.seconds("save_blocking") + measured.seconds("save_background")
    assert parts <= whole == pytest.approx(parts, rel=0.05, abs=0.03)


@pytest.mark.parametrize("phase", ["steps_before", "steps_during", "steps_after"])
def test_steps_take_no_longer_than_their_phase(measured, phase):
    spent = measured.train(phase, "steps") * measured.train(phase, "step_mean_s")
    assert 0 < spent <= measured.seconds(phase)


def test_inflation_is_a_ratio_to_the_steps_before(measured):
    before = measured.train("steps_before", "step_mean_s")
    for phase in ("steps_during", "steps_after"):
        ratio = measured.train(phase, "step_mean_s") / before
        assert measured.train(phase, "step_inflation") == pytest.approx(ratio)


def test_what_is_lost_follows_from_the_other_samples(measured):
    steps, mean, inflation = (
        measured.train("steps_during", metric)
        for metric in ("steps", "step_mean_s", "step_inflation")
    )
    duration = max(steps * mean, measured.seconds("save_background"))
    lost = measured.seconds("save_blocking") + duration * (1 - 1 / inflation)
    assert measured.train("save", "blocked_s") == measured.seconds("save_blocking")
    assert measured.train("save", "lost_s") == pytest.approx(lost)
    assert measured.train("save", "lost_steps") == pytest.approx(
        lost / measured.train("steps_before", "step_mean_s")
    )


def test_nothing_compiles_in_measured_steps(measured):
    assert not [key for key in measured.values if key.startswith("steps_") and "8_jax" in key]


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
    assert repeat().train("steps_during", "steps") >= 40


@pytest.mark.slow
def test_a_save_that_is_not_asynchronous_blocks_all_training(repeat):
    outcome = repeat(async_enabled=False)
    assert outcome.operations == {"steps_before", "save_blocking", "save", "steps_after"}
    assert outcome.train("steps_during", "steps") == 0
    assert outcome.train("save", "lost_s") == outcome.seconds("save_blocking")


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["steps_before", "steps_after"])
def test_numbers_of_steps(repeat, phase):
    assert repeat(**{phase: 7}).train(phase, "steps") == 7


@pytest.mark.slow
def test_steps_after_may_be_none(repeat):
    outcome = repeat(steps_after=0)
    assert "steps_after" not in outcome.operations
    assert outcome.train("steps_after", "steps") == 0


@pytest.mark.slow
def test_max_steps_during(repeat):
    assert repeat(max_steps_during=1).train("steps_during", "steps") == 1


@pytest.mark.slow
def test_matrix_size(repeat, monkeypatch):
    made, prepare = [], Training.__init__

    def noted(training, tree, *, matrix_size):
        made.append(matrix_size)
        prepare(training, tree, matrix_size=matrix_size)

    monkeypatch.setattr(Training, "__init__", noted)
    repeat(matrix_size=24)
    assert made == [24]


@pytest.mark.slow
def test_metric_tracemalloc_enabled(repeat):
    values = repeat(metric_tracemalloc_enabled=True).values
    assert "steps_during_7_memory/tracemalloc_peak_diff_mb" in values


@pytest.mark.slow
def test_options_of_orbax_reach_it(repeat, tmp_path):
    repeat(use_ocdbt=False, use_zarr3=False)
    assert list(tmp_path.rglob(".zarray"))
    assert not list(tmp_path.rglob("manifest.ocdbt"))


@pytest.mark.parametrize(
    ("option", "fewest"),
    [("steps_before", 1), ("steps_after", 0), ("max_steps_during", 1), ("matrix_size", 1)],
)
def test_numbers_that_leave_nothing_to_measure_are_refused(option, fewest):
    assert TrainInterferenceOptions(**{option: fewest}).is_valid()
    with pytest.raises(ValueError, match=f"{option} must be {fewest} or more, got {fewest - 1}"):
        TrainInterferenceOptions(**{option: fewest - 1})


def test_what_save_restore_refuses_is_refused_here_too():
    assert not TrainInterferenceOptions(enable_replica_parallel_separate_folder=True).is_valid()


@pytest.mark.slow
def test_what_was_saved_is_loaded_and_verified(repeat, tree):
    outcome = repeat()
    assert len(outcome.restored) == 1
    assert digest(outcome.restored[0]) == digest(tree)


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
def test_nothing_is_loaded_when_verification_is_off(tree, tmp_path, monkeypatch):
    from orbax.checkpoint import v1 as ocp

    loads = []
    monkeypatch.setattr(ocp, "load", lambda *arguments: loads.append(arguments))
    context = TestContext(
        pytree=tree, path=epath.Path(tmp_path), options=TrainInterferenceOptions(**SMALL)
    )
    TrainInterference().test_fn(context)
    assert loads == []


@pytest.mark.slow
def test_the_data_can_be_used_again_and_again(repeat, tree):
    before = digest(tree)
    for _ in range(2):
        repeat()
    assert digest(tree) == before


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


def test_every_value_is_finite(measured):
    assert all(map(math.isfinite, measured.values.values()))


@pytest.mark.slow
def test_a_state_on_one_device_is_trained_there(tmp_path):
    spec = CheckpointConfig.model_validate({"spec": {"w": {"dtype": "float32", "shape": [64]}}})
    context = TestContext(
        pytree=generate(spec.spec, seed=0, mesh=None),
        path=epath.Path(tmp_path),
        options=TrainInterferenceOptions(**SMALL),
        verifier=lambda restored, _: jax.block_until_ready(restored),
    )
    outcome = Outcome(TrainInterference().test_fn(context).metrics, [])
    assert outcome.train("steps_before", "steps") == 4
