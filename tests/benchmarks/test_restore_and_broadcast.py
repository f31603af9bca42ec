"""`restore_and_broadcast`: every replica gets every value."""

import json

import pytest
from etils import epath

from orbax_bench_core.authoring import UnmetNeed, VerificationError
from orbax_bench_core.benchmarks import restore_and_broadcast
from orbax_bench_core.benchmarks.restore_and_broadcast import (
    RestoreAndBroadcast,
    RestoreAndBroadcastOptions,
)
from orbax_bench_core.benchmarks.support import existing, replicas
from orbax_bench_core.state import orbax_api

from .conftest import ARRAYS

BROADCAST = "load_3_load_breakdown/broadcast_s"


def test_broadcasts_unless_told_otherwise():
    assert RestoreAndBroadcastOptions().use_load_and_broadcast is True


@pytest.mark.slow
@pytest.mark.parametrize("broadcast", [True, False])
def test_use_load_and_broadcast(run, broadcast):
    outcome = run(RestoreAndBroadcast, use_load_and_broadcast=broadcast)
    assert outcome.blocks == ["load"]
    assert (BROADCAST in outcome.metrics.results) is broadcast
    assert outcome.verified


@pytest.mark.slow
def test_reference_sharding_path_describes_one_replica(run, tmp_path, monkeypatch):
    mesh = {"shape": [2, 2], "axes": ["x", "y"]}
    content = {
        name: {"shape": shape, "dtype": dtype, "sharding": {"mesh": mesh, "spec": ["y", "x"]}}
        for name, shape, dtype in [
            ("array", [512, 256], "bfloat16"),
            ("nested.replicated", [64, 64], "float32"),
        ]
    }
    (tmp_path / "sharding.json").write_text(json.dumps(content))
    seen = []
    check = replicas.check_replicas
    monkeypatch.setattr(
        restore_and_broadcast, "check_replicas", lambda tree: (seen.append(tree), check(tree))
    )
    run(RestoreAndBroadcast, spec=ARRAYS, reference_sharding_path=str(tmp_path / "sharding.json"))
    array = seen[0]["array"]
    assert array.sharding.mesh.shape == {"replica": 2, "x": 2, "y": 2}
    assert {shard.data.shape for shard in array.addressable_shards} == {(256, 128)}


@pytest.mark.slow
def test_reference_checkpoint_path_is_what_is_loaded(run, tmp_path, make_tree):
    given = epath.Path(tmp_path) / "given"
    orbax_api.save(given, make_tree(ARRAYS))
    outcome = run(RestoreAndBroadcast, spec=ARRAYS, reference_checkpoint_path=str(given))
    assert outcome.verified
    assert outcome.files("*") == []
    assert outcome.inventory_path == given / "state"


@pytest.mark.slow
def test_a_replica_that_got_nothing_is_found(run, monkeypatch):
    load = existing.Reference.load

    def half(self, target):
        tree = load(self, target)
        array = tree["array"]
        parts = [
            shard.data if shard.replica_id == 0 else shard.data * 0
            for shard in array.addressable_shards
        ]
        import jax

        broken = jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)
        return {**tree, "array": broken}

    monkeypatch.setattr(existing.Reference, "load", half)
    with pytest.raises(VerificationError, match="array: two replicas"):
        run(RestoreAndBroadcast)


@pytest.mark.slow
def test_the_first_axis_must_count_replicas(run, make_mesh):
    with pytest.raises(UnmetNeed, match="first axis is 'replica'"):
        run(RestoreAndBroadcast, mesh=make_mesh(data=2, model=4))
