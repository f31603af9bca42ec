"""`replica_parallel_multislice`: saves what every replica holds."""

import json

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.replica_parallel_multislice import (
    ReplicaParallelMultislice,
    ReplicaParallelMultisliceOptions,
)
from orbax_bench_core.state import orbax_api

from .conftest import ARRAYS

CHUNKS = "array/c/*/*"


@pytest.mark.slow
@pytest.mark.parametrize(("parallel", "chunks"), [(False, 4), (True, 8)])
def test_use_replica_parallel(run, parallel, chunks):
    outcome = run(ReplicaParallelMultislice, use_replica_parallel=parallel, use_ocdbt=False)
    assert len(outcome.files(CHUNKS, "ckpt/0/state")) == chunks
    assert outcome.verified


@pytest.mark.slow
def test_defect_11_every_saving_is_kept(run):
    outcome = run(ReplicaParallelMultislice, num_savings=3)
    assert outcome.blocks == ["save_blocking", "save_background", "save"] * 3
    assert sorted(path.name for path in (outcome.folder / "ckpt").iterdir()) == ["0", "1", "2"]


@pytest.mark.slow
def test_async_enabled(run):
    assert run(ReplicaParallelMultislice, async_enabled=False).operations == {
        "save",
        "save_blocking",
    }


@pytest.mark.slow
def test_only_what_was_measured_is_left(run):
    assert [path.name for path in run(ReplicaParallelMultislice).folder.iterdir()] == ["ckpt"]


@pytest.mark.slow
def test_reference_sharding_path_describes_one_replica(run, tmp_path):
    mesh = {"shape": [2, 2], "axes": ["x", "y"]}
    content = {
        name: {"shape": shape, "dtype": dtype, "sharding": {"mesh": mesh, "spec": [None, "y"]}}
        for name, shape, dtype in [
            ("array", [512, 256], "bfloat16"),
            ("nested.replicated", [64, 64], "float32"),
        ]
    }
    (tmp_path / "sharding.json").write_text(json.dumps(content))
    outcome = run(
        ReplicaParallelMultislice,
        spec=ARRAYS,
        use_ocdbt=False,
        reference_sharding_path=str(tmp_path / "sharding.json"),
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


def test_nothing_to_save_is_refused():
    with pytest.raises(ValueError, match="num_savings must be 1 or more"):
        ReplicaParallelMultisliceOptions(num_savings=0)
