"""`resharding`: loads onto the layout that is asked for."""

import json

import jax
import numpy as np
import pytest
from etils import epath
from jax.sharding import PartitionSpec

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.resharding import Resharding
from orbax_bench_core.benchmarks.support import existing
from orbax_bench_core.state import StateError, orbax_api

from .conftest import ARRAYS


@pytest.fixture
def checkpoint(tmp_path, make_tree):
    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(ARRAYS))
    return str(tmp_path / "given")


@pytest.fixture
def sharding_file(tmp_path):
    mesh = {"shape": [2, 4], "axes": ["x", "y"]}

    def entry(shape, dtype, spec):
        return {"shape": shape, "dtype": dtype, "sharding": {"mesh": mesh, "spec": spec}}

    content = {
        "array": entry([512, 256], "bfloat16", [None, ["x", "y"]]),
        "nested.replicated": entry([64, 64], "float32", ["y", None]),
    }
    file = tmp_path / "sharding.json"
    file.write_text(json.dumps(content))
    return str(file)


@pytest.fixture
def loaded(monkeypatch):
    """What was loaded, before it is verified."""
    trees = []
    load = existing.Reference.load

    def noted(self, target):
        tree = load(self, target)
        trees.append(jax.tree.map(lambda leaf: leaf.sharding, tree))
        return tree

    monkeypatch.setattr(existing.Reference, "load", noted)
    return trees


@pytest.mark.slow
def test_measures_one_load_of_all_bytes(run):
    outcome = run(Resharding)
    assert outcome.blocks == ["load"]
    assert outcome.value("load", "5_inventory/operation_bytes") == 512 * 256 * 2 + 64 * 64 * 4
    assert outcome.prepared == ["load"]
    assert outcome.verified


@pytest.mark.slow
def test_without_a_path_the_data_are_saved_first(run):
    assert run(Resharding).files("manifest.ocdbt", "reference")


@pytest.mark.slow
def test_reference_checkpoint_path(run, checkpoint):
    outcome = run(Resharding, reference_checkpoint_path=checkpoint, spec=ARRAYS)
    assert outcome.verified
    assert outcome.files("*") == []


@pytest.mark.slow
def test_reference_sharding_path(run, sharding_file, loaded):
    run(Resharding, reference_sharding_path=sharding_file, spec=ARRAYS)
    (tree,) = loaded
    assert tree["array"].spec == PartitionSpec(None, ("x", "y"))
    assert tree["nested"]["replicated"].spec == PartitionSpec("y", None)


def test_the_default_layout_is_another_than_the_saved(run, loaded):
    run(Resharding, spec=ARRAYS)
    (tree,) = loaded
    assert tree["array"].shard_shape((512, 256)) == (128, 128)  # saved were parts of 128 x 256


@pytest.mark.slow
def test_options_of_a_save_concern_the_reference(run):
    assert not run(Resharding, use_ocdbt=False).files("manifest.ocdbt", "reference")


def test_without_data_the_load_is_compared_with_another(run, checkpoint):
    run(Resharding, reference_checkpoint_path=checkpoint, spec=None)


@pytest.mark.usefixtures("loaded")
def test_without_data_a_wrong_load_is_found(run, checkpoint, monkeypatch):
    load, calls = existing.Reference.load, []

    def wrong(self, target):
        tree = load(self, target)
        calls.append(1)
        return tree if len(calls) > 1 else {**tree, "array": tree["array"] + 1}

    monkeypatch.setattr(existing.Reference, "load", wrong)
    with pytest.raises(VerificationError, match="array: different"):
        run(Resharding, reference_checkpoint_path=checkpoint, spec=None)


@pytest.mark.slow
def test_another_checkpoint_than_the_data_is_found(run, tmp_path, make_tree):
    other = jax.tree.map(np.zeros_like, make_tree(ARRAYS))
    orbax_api.save(epath.Path(tmp_path) / "other", jax.tree.map(jax.numpy.asarray, other))
    with pytest.raises(VerificationError, match="array: different"):
        run(Resharding, reference_checkpoint_path=str(tmp_path / "other"), spec=ARRAYS)


def test_nothing_to_load_is_said(run):
    with pytest.raises(UnmetNeed, match="give reference_checkpoint_path"):
        run(Resharding, spec=None)


def test_a_path_without_checkpoint_is_said(run, tmp_path):
    with pytest.raises(StateError, match="does not exist"):
        run(Resharding, reference_checkpoint_path=str(tmp_path / "nothing"))


@pytest.mark.slow
def test_a_layout_that_cannot_be_broadcast_is_said(run):
    with pytest.raises(UnmetNeed, match="counts replicas"):
        run(Resharding, use_load_and_broadcast=True)


@pytest.mark.slow
def test_verification_can_be_switched_off(run):
    assert not run(Resharding, verify=False).verified
