"""Loads of existing checkpoints: compared with what was recorded, or called not verified."""

import json

import jax
import pytest
from etils import epath

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.loads import OrbaxLoad, OrbaxLoadOptions
from orbax_bench_core.benchmarks.support.existing import Reference
from orbax_bench_core.inventory import take_inventory
from orbax_bench_core.state import DIGESTS_FILE, StateError, make_context, orbax_api, save_fixture
from orbax_bench_core.testing import run_benchmark

from .conftest import ARRAYS


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


@pytest.mark.slow
def test_a_load_in_the_background_is_refused_as_orbax_refuses_it(run, checkpoint):
    with pytest.raises(UnmetNeed, match=r"refuses load_async: true: .* SAFETENSORS"):
        run(OrbaxLoad, spec=None, checkpoint_path=str(checkpoint), load_async=True)


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


RECORDED = {"w": {"dtype": "float32", "shape": [16, 8]}, "step": "int"}
READERS = ["orbax_load", "resharding"]
PATH = {"orbax_load": "checkpoint_path", "resharding": "reference_checkpoint_path"}


@pytest.fixture
def recorded(tmp_path, make_tree):
    """A checkpoint as `generate-checkpoint` leaves it, of values that lie in files as they are."""
    with make_context(use_compression=False, use_ocdbt=False, use_zarr3=False):
        save_fixture(make_tree(RECORDED), str(tmp_path / "given"))
    return tmp_path / "given"


def flip_bit(checkpoint):
    (chunk, *_) = sorted((checkpoint / "state" / "w").glob("[0-9]*"))
    content = bytearray(chunk.read_bytes())
    content[5] ^= 1
    chunk.write_bytes(bytes(content))


def load(benchmark, given, folder, **blocks):
    options = {} if "checkpoint" in blocks else {PATH[benchmark]: str(given)}
    return run_benchmark(benchmark, str(folder), options=options, **blocks)[0]


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", READERS)
def test_a_load_agrees_with_the_recorded_digest(benchmark, recorded, tmp_path):
    outcome = load(benchmark, recorded, tmp_path / "run")
    outcome.assert_verified()
    assert outcome.record.state.verified == "reference"


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", READERS)
def test_a_flipped_bit_fails_the_repeat(benchmark, recorded, tmp_path):
    flip_bit(recorded)
    record = load(benchmark, recorded, tmp_path / "run").record
    assert record.status == "failed"
    assert record.error.type == "VerificationError"
    assert "w: different" in record.error.message
    assert record.state.verified == "none"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["option", "checkpoint_config"])
def test_without_a_record_it_is_compared_with_itself_and_never_verified(source, recorded, tmp_path):
    (recorded / DIGESTS_FILE).unlink()
    flip_bit(recorded)
    blocks = {} if source == "option" else {"checkpoint": {"path": str(recorded)}}
    outcome = load("orbax_load", recorded, tmp_path / "run", **blocks)
    outcome.assert_passed()
    assert outcome.record.state.verified == "itself"
    with pytest.raises(AssertionError, match="two loads of the same bytes"):
        outcome.assert_verified()


@pytest.mark.slow
def test_a_digest_captured_beside_a_checkpoint_is_what_later_loads_are_compared_with(
    recorded, tmp_path
):
    (recorded / DIGESTS_FILE).unlink()
    options = {"checkpoint_path": str(recorded), "capture_digests_path": str(recorded)}
    (first,) = run_benchmark("orbax_load", str(tmp_path / "first"), options=options)
    first.assert_passed()
    assert first.record.state.verified == "itself"
    flip_bit(recorded)
    record = load("orbax_load", recorded, tmp_path / "second").record
    assert "w: different" in record.error.message


@pytest.mark.slow
def test_a_load_that_is_not_what_was_recorded_replaces_no_digest(recorded, tmp_path):
    before = (recorded / DIGESTS_FILE).read_text()
    flip_bit(recorded)
    options = {"checkpoint_path": str(recorded), "capture_digests_path": str(recorded)}
    (outcome,) = run_benchmark("orbax_load", str(tmp_path / "run"), options=options)
    assert outcome.record.error.type == "VerificationError"
    assert (recorded / DIGESTS_FILE).read_text() == before


@pytest.mark.slow
def test_what_is_recorded_must_be_a_digest(recorded, tmp_path):
    (recorded / DIGESTS_FILE).write_text("[]")
    record = load("orbax_load", recorded, tmp_path / "run").record
    assert "is not a digest per leaf" in record.error.message


@pytest.mark.slow
def test_generated_data_are_a_reference_of_a_checkpoint_that_holds_them(run, tmp_path, make_tree):
    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(RECORDED))
    outcome = run(OrbaxLoad, spec=RECORDED, checkpoint_path=str(tmp_path / "given"))
    assert outcome.against == ["reference"]


@pytest.mark.slow
def test_defect_24_a_missing_reference_does_not_pass(run, tmp_path):
    with pytest.raises(StateError, match=r"holds no digests\.json"):
        run(OrbaxLoad, reference_digests_path=str(tmp_path / "nothing"))
