"""A training job as it is restarted, life by life."""

import jax
import pytest
from etils import epath

from orbax_bench_core.authoring import Drill, Killed, TestContext, VerificationError
from orbax_bench_core.benchmarks.training_job import TrainingJob, TrainingJobOptions
from orbax_bench_core.state import check_digest
from tests.support.processes import run_cli

SPEC = {"w": {"dtype": "float32", "shape": [64, 16], "sharding": ["fsdp"]}, "step": "int"}
SMALL = {"save_interval_steps": 2, "train_steps": 5, "matrix_size": 16}


@pytest.fixture(scope="module")
def tree(make_tree, make_mesh):
    return make_tree(SPEC, make_mesh(fsdp=8))


@pytest.fixture
def live(tree, tmp_path):
    """Lives one life on one directory, and returns its values by operation and metric."""
    compared = []

    def verifier(restored, expected):
        compared.append((restored, expected))
        check_digest(restored, expected)

    def call(drill=None, **options):
        context = TestContext(
            pytree=tree,
            path=epath.Path(tmp_path),
            options=TrainingJobOptions(**{**SMALL, **options}),
            verifier=verifier,
            drill=drill,
        )
        metrics = TrainingJob().test_fn(context).metrics
        return {key: value for key, (value, _) in metrics.results.items()}

    call.compared = compared
    return call


def killed(steps=5):
    return Drill(killed=Killed(steps=steps, notice_s=0.1, start_s=2.0))


@pytest.mark.slow
def test_without_a_drill_it_goes_on_in_the_same_process(live):
    values = live()
    assert {"step[4]_0_basics/time_s", "restore_0_basics/time_s"} <= values.keys()
    assert "first_step_0_basics/time_s" in values
    assert not any(key.startswith("recovery") for key in values)
    (compared,) = live.compared
    assert compared[0] is not compared[1]


@pytest.mark.slow
def test_a_life_after_a_kill_goes_on_from_the_last_save(live, tmp_path):
    live()
    (tmp_path / "steps" / "6.orbax-checkpoint-tmp-1").mkdir()
    values = live(killed())
    assert values["recovery_7_overhead/steps_lost_count"] == 1
    assert values["recovery_7_overhead/uncommitted_count"] == 1
    parts = ("notice", "start", "restore", "first_step")
    total = sum(values[f"{part}_0_basics/time_s"] for part in parts)
    assert values["recovery_0_basics/time_s"] == pytest.approx(total)


@pytest.mark.slow
@pytest.mark.parametrize(("cache", "kept"), [("warm", True), ("cold", False)])
def test_a_warm_cache_is_that_of_the_life_before_and_a_cold_one_is_empty(
    live, tmp_path, cache, kept
):
    before = jax.config.jax_compilation_cache_dir
    live()
    entry = tmp_path / "compilation_cache" / "entry"
    entry.parent.mkdir()
    entry.write_text("")
    live(killed(), compilation_cache=cache)
    assert jax.config.jax_compilation_cache_dir == before  # for the next point of this process
    assert entry.exists() == kept


@pytest.mark.slow
def test_a_job_without_a_committed_save_does_not_come_back(live, tmp_path):
    (tmp_path / "steps").mkdir()
    with pytest.raises(VerificationError, match="no committed checkpoint"):
        live(killed())


@pytest.mark.slow
def test_a_save_after_the_last_report_that_was_read_loses_nothing(live):
    live()
    assert live(killed(3))["recovery_7_overhead/steps_lost_count"] == 0


def test_only_local_disks_can_be_wiped_and_a_job_saves_once():
    assert TrainingJobOptions().is_valid()
    assert not TrainingJobOptions(wiped=True).is_valid()
    assert TrainingJobOptions(wiped=True, tier="local").is_valid()
    assert not TrainingJobOptions(train_steps=5, save_interval_steps=6).is_valid()


@pytest.mark.slow
def test_a_disk_that_only_a_service_fills_again_is_refused_by_name(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "suite_name: wiped\nbenchmarks:\n- generator: training_job\n"
        "  options: {tier: replicator, wiped: true}\n"
    )
    done = run_cli("expand", str(suite))
    assert done.returncode == 2
    assert "`wiped` needs `tier: local`" in done.stderr
    assert "a service of the platform (multi-tier checkpointing of GKE)" in done.stderr
