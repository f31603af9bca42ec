"""`orbax_load`: loads an existing checkpoint."""

import json

import jax
import pytest
from etils import epath

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks.orbax_load import OrbaxLoad, OrbaxLoadOptions
from orbax_bench_core.benchmarks.support.existing import Reference
from orbax_bench_core.inventory import take_inventory
from orbax_bench_core.state import orbax_api
from orbax_bench_core.testing import run_benchmark

from .conftest import ARRAYS


@pytest.fixture
def checkpoint(tmp_path, make_tree):
    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(ARRAYS))
    return tmp_path / "given"


@pytest.fixture
def shardings(monkeypatch):
    """The shardings of what was loaded."""
    trees = []
    load = Reference.load

    def noted(self, target):
        trees.append(jax.tree.map(lambda leaf: leaf.sharding, target))
        return load(self, target)

    monkeypatch.setattr(Reference, "load", noted)
    return trees


@pytest.mark.slow
@pytest.mark.parametrize("item", ["", "state"])
def test_checkpoint_path_is_a_root_or_an_item(run, checkpoint, item):
    outcome = run(OrbaxLoad, spec=ARRAYS, checkpoint_path=str(checkpoint / item))
    assert outcome.blocks == outcome.prepared == ["load"]
    assert outcome.verified
    assert outcome.files("*") == []
    assert str(outcome.inventory_path) == str(checkpoint / "state")


@pytest.mark.slow
def test_without_a_path_the_data_are_saved_first(run):
    outcome = run(OrbaxLoad)
    assert outcome.verified
    assert outcome.inventory_path is None
    assert outcome.value("load", "5_inventory/operation_bytes") == 512 * 256 * 2 + 64 * 64 * 4


@pytest.mark.slow
def test_by_default_every_array_is_replicated_on_all_devices(run, checkpoint, shardings):
    run(OrbaxLoad, spec=None, checkpoint_path=str(checkpoint), verify=False)
    assert {s.is_fully_replicated for s in jax.tree.leaves(shardings[0])} == {True}
    assert len(shardings[0]["array"].device_set) == 8


@pytest.mark.slow
def test_sharding_config_path(run, checkpoint, shardings, sharding_file):
    run(
        OrbaxLoad,
        spec=ARRAYS,
        checkpoint_path=str(checkpoint),
        sharding_config_path=sharding_file({"x": 8}, ["x"]),
    )
    assert shardings[0]["array"].shard_shape((512, 256)) == (64, 256)


@pytest.mark.slow
def test_capture_digests_path_and_reference_digests_path(run, checkpoint, tmp_path):
    given = {"spec": None, "checkpoint_path": str(checkpoint)}
    run(OrbaxLoad, **given, capture_digests_path=str(tmp_path / "digests"))
    run(OrbaxLoad, **given, reference_digests_path=str(tmp_path / "digests"))
    file = tmp_path / "digests" / "digests.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "array": "0" * 32}))
    with pytest.raises(VerificationError, match="array: different"):
        run(OrbaxLoad, **given, reference_digests_path=str(tmp_path / "digests"))


def test_both_digests_at_once_are_refused():
    with pytest.raises(ValueError, match="not both"):
        OrbaxLoadOptions(capture_digests_path="a", reference_digests_path="b")


@pytest.mark.slow
def test_the_record_lists_what_was_loaded(checkpoint, tmp_path):
    options = {"checkpoint_path": str(checkpoint)}
    (outcome,) = run_benchmark("orbax_load", str(tmp_path / "run"), options=options)
    outcome.assert_passed()
    assert outcome.record.inventory == take_inventory(epath.Path(checkpoint) / "state")
    assert outcome.record.inventory.data.files > 0
