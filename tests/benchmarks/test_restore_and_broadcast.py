"""`restore_and_broadcast`: every replica gets every value."""

import pytest
from etils import epath

from orbax_bench_core.authoring import VerificationError
from orbax_bench_core.benchmarks import restore_and_broadcast
from orbax_bench_core.benchmarks.restore_and_broadcast import (
    RestoreAndBroadcast,
)
from orbax_bench_core.benchmarks.support import existing, replicas
from orbax_bench_core.state import orbax_api

from .conftest import ARRAYS


@pytest.mark.slow
def test_reference_sharding_path_describes_one_replica(run, sharding_file, monkeypatch):
    file = sharding_file({"x": 2, "y": 2}, ["y", "x"])
    seen = []
    check = replicas.check_replicas
    monkeypatch.setattr(
        restore_and_broadcast, "check_replicas", lambda tree: (seen.append(tree), check(tree))
    )
    run(RestoreAndBroadcast, spec=ARRAYS, reference_sharding_path=file)
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
