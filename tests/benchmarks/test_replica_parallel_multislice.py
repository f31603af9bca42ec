"""`replica_parallel_multislice`: saves what every replica holds."""

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.replica_parallel_multislice import (
    ReplicaParallelMultislice,
)
from orbax_bench_core.state import orbax_api

from .conftest import ARRAYS

CHUNKS = "array/c/*/*"


@pytest.mark.slow
def test_defect_11_every_saving_is_kept(run):
    outcome = run(ReplicaParallelMultislice, num_savings=3)
    assert outcome.blocks == ["save_blocking", "save_background", "save"] * 3
    assert sorted(path.name for path in (outcome.folder / "ckpt").iterdir()) == ["0", "1", "2"]


@pytest.mark.slow
def test_reference_sharding_path_describes_one_replica(run, sharding_file):
    outcome = run(
        ReplicaParallelMultislice,
        spec=ARRAYS,
        use_ocdbt=False,
        reference_sharding_path=sharding_file({"x": 2, "y": 2}, [None, "y"]),
    )
    files = outcome.files(CHUNKS, "ckpt/0/state")
    assert sorted(str(file)[-3:] for file in files) == ["0/0", "0/1"]
    assert outcome.verified


@pytest.mark.slow
def test_reference_checkpoint_path_is_left_alone(run, tmp_path, make_tree):
    from etils import epath

    orbax_api.save(epath.Path(tmp_path) / "given", make_tree(ARRAYS))
    run(
        ReplicaParallelMultislice,
        spec=ARRAYS,
        reference_checkpoint_path=str(tmp_path / "given"),
    )
    assert (tmp_path / "given").exists()


@pytest.mark.slow
def test_the_first_axis_must_count_replicas(run, make_mesh):
    with pytest.raises(UnmetNeed, match="first axis is 'replica'"):
        run(ReplicaParallelMultislice, mesh=make_mesh(data=2, model=4))
