"""Several items in one checkpoint, and parts of a checkpoint."""

import json

import pytest

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks.checkpointables import Checkpointables
from orbax_bench_core.benchmarks.partial_checkpoint import PartialCheckpoint
from orbax_bench_core.state import orbax_api
from orbax_bench_core.testing import run_benchmark

from .conftest import ARRAYS

pytestmark = pytest.mark.slow

ARRAY_BYTES = 512 * 256 * 2
REPLICATED_BYTES = 64 * 64 * 4
LOADS = ["load", "load_one", "metadata"]


@pytest.mark.parametrize(
    ("enabled", "saves"),
    [(True, ["save_blocking", "save_background", "save"]), (False, ["save_blocking", "save"])],
)
def test_all_items_are_saved_and_one_is_loaded_alone(run, enabled, saves):
    outcome = run(Checkpointables, async_enabled=enabled)
    assert outcome.blocks == [*saves, *LOADS]
    assert outcome.prepared == LOADS
    assert outcome.against == ["saved"] * 3
    assert outcome.value("load", "5_inventory/operation_bytes") == ARRAY_BYTES + REPLICATED_BYTES
    assert outcome.value("load_one", "5_inventory/operation_bytes") == ARRAY_BYTES
    (position,) = outcome.files("*.json", "step/iterator")
    assert json.loads(position.read_text()) == 17
    (config,) = outcome.files("*.json", "step/config")
    assert json.loads(config.read_text())["batch"] == 8
    assert {folder.name for folder in (outcome.folder / "step").iterdir() if folder.is_dir()} == {
        "tree_0",
        "tree_1",
        "config",
        "iterator",
    }


@pytest.mark.parametrize(
    ("deletion", "deletions"),
    [
        ("blocking", ["delete_one", "delete"]),
        ("background", ["delete_one_blocking", "delete_one", "delete_blocking", "delete"]),
    ],
)
def test_one_item_is_deleted_and_then_the_rest(run, deletion, deletions):
    outcome = run(Checkpointables, deletion=deletion)
    assert outcome.blocks[-len(deletions) :] == deletions
    assert not (outcome.folder / "step").exists()


@pytest.mark.parametrize(
    ("left", "said"), [("tree_0", "describe .*they describe .*tree_0"), (None, "is still there")]
)
def test_what_is_not_deleted_is_an_error(run, monkeypatch, left, said):
    delete = orbax_api.delete
    monkeypatch.setattr(
        orbax_api, "delete", lambda path, item: None if item == left else delete(path, item)
    )
    with pytest.raises(VerificationError, match=said):
        run(Checkpointables, deletion="blocking")


def test_less_is_read_for_one_item_than_for_all(run):
    outcome = run(Checkpointables, spec=ARRAYS)
    one, every = (outcome.value(name, "5_inventory/load_raw_gb") for name in ("load_one", "load"))
    assert 0 < one < every


def test_more_items_than_leaves_are_refused(run):
    with pytest.raises(UnmetNeed, match="checkpoint of 3 leaves into 4"):
        run(Checkpointables, tree_items=4)


def test_an_item_that_the_metadata_lack_is_an_error(run, monkeypatch):
    monkeypatch.setattr(orbax_api, "describe_items", lambda path: {"config": None})
    with pytest.raises(VerificationError, match=r"they describe \['config'\]"):
        run(Checkpointables)


def test_a_position_that_is_not_loaded_is_an_error(run, monkeypatch):
    load = orbax_api.load_items
    monkeypatch.setattr(
        orbax_api, "load_items", lambda path, wanted: load(path, wanted | {"iterator": None})
    )
    with pytest.raises(Exception, match="pass an instance"):
        run(Checkpointables)


@pytest.mark.parametrize("left_out_by", ["placeholder", "absence"])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_checkpoint_is_saved_in_pieces_and_a_part_of_it_loaded(run, enabled, left_out_by):
    outcome = run(
        PartialCheckpoint,
        pieces=2,
        async_enabled=enabled,
        loaded_share=0.1,
        left_out_by=left_out_by,
    )
    if enabled:
        saves = ["save_blocking", "save_piece", "finalize", "save_background", "save"]
    else:
        saves = ["save_piece", "finalize", "save_blocking", "save"]
    saves = ["save_piece", *saves]
    assert outcome.blocks == [*saves, "load", "load_part"]
    assert outcome.against == ["saved"] * 2
    said = f"{REPLICATED_BYTES} of {ARRAY_BYTES + REPLICATED_BYTES} bytes"
    assert outcome.metrics.notes["loaded part"] == [said]
    part, whole = (
        outcome.value(name, "5_inventory/load_requested_gb") for name in ("load_part", "load")
    )
    assert part < whole


def test_without_pieces_the_whole_is_saved_at_once(run):
    outcome = run(PartialCheckpoint, pieces=None)
    assert outcome.operations == {
        "save",
        "save_blocking",
        "save_background",
        "load",
        "load_part",
    }


def test_a_share_into_which_no_array_fits_is_refused(run):
    with pytest.raises(UnmetNeed, match="no array of at most 27 bytes to load alone"):
        run(PartialCheckpoint, loaded_share=0.0001)


@pytest.mark.parametrize(
    ("option", "value"), [("loaded_share", 0), ("loaded_share", 1.5), ("pieces", 0)]
)
def test_numbers_that_mean_nothing_are_refused(run, option, value):
    with pytest.raises(ValueError, match=f"{option} must be"):
        run(PartialCheckpoint, **{option: value})


def test_options_are_proved(tmp_path):
    spec = {"a": {"dtype": "float32", "shape": [64, 64]}, "b": {"dtype": "int32", "shape": [64]}}
    found = set()
    for name, options in (
        ("checkpointables", {"tree_items": [1, 2]}),
        ("partial_checkpoint", {"pieces": [None, 2], "loaded_share": [0.1, 1.0]}),
    ):
        outcomes = run_benchmark(
            name, str(tmp_path / name), options=options, checkpoint={"spec": spec}
        )
        found |= {
            (effect.option, json.dumps(effect.asked), effect.state)
            for outcome in outcomes
            for effect in outcome.record.effects
            if effect.option in options
        }
    assert found == {
        ("tree_items", "1", "in effect"),
        ("tree_items", "2", "in effect"),
        ("pieces", "null", "in effect"),
        ("pieces", "2", "in effect"),
        ("loaded_share", "0.1", "in effect"),
        ("loaded_share", "1.0", "in effect"),
    }
