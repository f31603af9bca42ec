"""`resharding`: loads onto the layout that is asked for."""

import jax
import numpy as np
import pytest
from etils import epath
from jax.sharding import PartitionSpec

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.resharding import Resharding
from orbax_bench_core.benchmarks.support import existing
from orbax_bench_core.state import orbax_api

from .conftest import ARRAYS


@pytest.fixture
def checkpoint(tmp_path, make_tree):
    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(ARRAYS))
    return str(tmp_path / "given")


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
def test_reference_sharding_path(run, sharding_file, loaded):
    file = sharding_file({"x": 2, "y": 4}, [None, ["x", "y"]], ["y", None])
    run(Resharding, reference_sharding_path=file, spec=ARRAYS)
    (tree,) = loaded
    assert tree["array"].spec == PartitionSpec(None, ("x", "y"))
    assert tree["nested"]["replicated"].spec == PartitionSpec("y", None)


def test_the_default_layout_is_another_than_the_saved(run, loaded):
    run(Resharding, spec=ARRAYS)
    (tree,) = loaded
    assert tree["array"].shard_shape((512, 256)) == (128, 128)  # saved were parts of 128 x 256


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
