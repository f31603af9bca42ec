"""Unmet needs of a benchmark, in one line each."""

from pathlib import Path

import pytest
from etils import epath

from orbax_bench_core.authoring import BenchmarkOptions, TestContext, UnmetNeed
from orbax_bench_core.benchmarks import two_tiers
from orbax_bench_core.benchmarks.support import needs
from orbax_bench_core.sweep import BUILTINS, load_class, options_class
from orbax_bench_core.testing import run_benchmark
from tests.support.processes import run_cli

ROOT = Path(__file__).parents[2]
OPTIONS = {name: options_class(load_class(path)) for name, path in BUILTINS.items()}


@pytest.fixture
def context(tmp_path):
    def make(**fields):
        given = {"pytree": None, "path": epath.Path(tmp_path), "options": BenchmarkOptions()}
        return TestContext(**{**given, **fields})

    return make


def refusal(check, *arguments):
    with pytest.raises(UnmetNeed) as raised:
        check(*arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_data_of_all_processes(context, make_tree, monkeypatch):
    given = context(pytree=make_tree({"w": {"dtype": "int8", "shape": [4]}}))
    assert needs.require_tree(given, "deleter") is given.pytree
    monkeypatch.setattr("jax.process_count", lambda: 2)
    said = refusal(needs.require_tree, given, "deleter")
    assert "all 2 processes, and each has its own 'w': add a mesh_config" in said
    assert needs.require_tree(given, "pytorch_dcp", of_all=False) is given.pytree


def test_a_leaf_names_those_that_are_there(context, make_tree):
    given = context(pytree=make_tree({"w": {"dtype": "int8", "shape": [4]}}))
    said = refusal(needs.require_leaf, given, "array", "array_handler")
    assert "'array'" in said
    assert "['w']" in said


def test_a_mesh(context):
    assert "add a mesh_config" in refusal(needs.require_mesh, context(), "single_replica")


@pytest.mark.parametrize(
    ("sizes", "axis"),
    [({"data": 8}, 0), ({"replica": 1, "model": 8}, 0), ({"replica": 2, "model": 4}, 5)],
)
def test_replicas(context, make_mesh, sizes, axis):
    said = refusal(needs.require_replicas, context(mesh=make_mesh(**sizes)), axis, "single_replica")
    assert str(sizes) in said


def test_whole_arrays_on_each_replica(context, make_mesh, make_tree):
    mesh = make_mesh(replica=2, model=4)
    tree = make_tree({"w": {"dtype": "int8", "shape": [4], "sharding": ["replica"]}}, mesh)
    given = context(pytree=tree, mesh=mesh)
    assert needs.require_replicas(given, 1, "single_replica") == (mesh, tree)
    said = refusal(needs.require_replicas, given, 0, "single_replica")
    assert "'w' is sharded along 'replica'" in said


def test_a_missing_part_of_orbax_names_the_release():
    assert "orbax-checkpoint" in refusal(needs.require_orbax_module, "no_such_part", "snapshotter")


REQUIRED = {
    "nnx_restore": {"inputs": "module:function"},
    "checkpoint_policy": {
        "checkpoint_policies_options": {
            "preservation_policies": [{"policy_type": "LatestN", "n": 1}],
            "save_decision_policies": [{"policy_type": "InitialSavePolicy"}],
        }
    },
}
MAKES_ITS_OWN = {"snapshotter"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BUILTINS) - MAKES_ITS_OWN))
def test_a_built_in_without_data_says_in_one_line_what_it_needs(name, tmp_path):
    (outcome,) = run_benchmark(name, str(tmp_path), options=REQUIRED.get(name, {}))
    error = outcome.record.error
    assert (error.type, error.traceback, outcome.samples) == ("UnmetNeed", "", ())
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({"train_steps": 1}, "local"),
        ({"train_steps": 3, "persistent_save_interval_steps": 3}, "persistent"),
    ],
)
def test_steps_that_leave_nothing_to_restore_are_said(options, source):
    given = two_tiers.P2pCheckpointManagerOptions(**options)
    assert f"to restore from {source}" in refusal(two_tiers._check_steps, given)


@pytest.mark.slow
def test_a_comparison_without_pytorch_names_the_extra_in_one_sentence(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    suite = ROOT / "examples/framework_comparison.yaml"
    words = ("ab", suite, "-o", tmp_path / "out", "--no-lock")
    done = run_cli(*words, folder=tmp_path, COLUMNS="300", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1, done.stderr
    said = (
        "the baseline cannot be measured in block 0: UnmetNeed: pytorch_dcp needs PyTorch "
        "2.7 or later: pip install 'orbax-bench[torch]' (No module named 'torch')"
    )
    assert said in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "name", "least"),
    [
        pytest.param(options, name, least, id=f"{builtin}-{name}")
        for builtin, options in OPTIONS.items()
        for name, least in getattr(options, "least", {}).items()
        if builtin != "checkpoint_policy"  # whose policies have no default
    ],
)
def test_numbers_that_leave_nothing_to_measure_are_refused(options, name, least):
    with pytest.raises(ValueError, match=f"{name} must be {least} or more, got {least - 1}"):
        options(**{name: least - 1})
