"""Each option of `save_restore` changes what Orbax does, seen on storage or in its own events."""

import gc
import itertools

import jax
import numpy as np
import pytest
from etils import epath

from orbax_bench_core.authoring import TestContext, VerificationError
from orbax_bench_core.benchmarks.save_restore import SaveRestore, SaveRestoreOptions
from orbax_bench_core.config import CheckpointConfig, MeshConfig
from orbax_bench_core.state import build_mesh, generate, tree_bytes
from orbax_bench_core.testing import run_benchmark

SPEC = {
    "sharded": {"dtype": "bfloat16", "shape": [512, 256], "sharding": ["fsdp"]},
    "nested": {"replicated": {"dtype": "float32", "shape": [64, 64]}},
    "step": "int",
    "name": "str",
}


class Outcome:
    """What one repeat measured and left on storage."""

    def __init__(self, results, directory):
        self.results = results
        self.state = directory / "ckpt" / "state"

    @property
    def operations(self):
        suffix = "_0_basics/time_s"
        return {key.removesuffix(suffix) for key in self.results if key.endswith(suffix)}

    def files(self, pattern):
        return [path for path in self.state.rglob(pattern) if path.is_file()]

    @property
    def num_bytes(self):
        return sum(path.stat().st_size for path in self.files("*"))


@pytest.fixture(scope="module")
def tree():
    mesh = build_mesh(
        MeshConfig(mesh_axes=("replica", "fsdp"), ici_parallelism={"replica": 2, "fsdp": 4})
    )
    spec = CheckpointConfig.model_validate({"spec": SPEC}).spec
    return generate(spec, seed=0, mesh=mesh)


@pytest.fixture
def round_trip(tree, tmp_path):
    repeats = itertools.count()

    def run(**options):
        folder = tmp_path / f"repeat_{next(repeats)}"
        folder.mkdir()
        restored = []
        context = TestContext(
            pytree=tree,
            path=epath.Path(folder),
            options=SaveRestoreOptions(**options),
            verifier=lambda found, expected: restored.append(found),
        )
        outcome = Outcome(SaveRestore().test_fn(context).metrics.results, folder)
        for saved, loaded in zip(jax.tree.leaves(tree), jax.tree.leaves(restored[0]), strict=True):
            assert np.array_equal(saved, loaded)
        return outcome

    return run


@pytest.mark.slow
def test_measures_the_guides_operations(round_trip):
    assert round_trip().operations == {"save", "save_blocking", "save_background", "load"}


def test_defect_13_save_is_its_blocking_and_its_background_part(round_trip):
    results = round_trip().results
    whole, blocking, background = (
        results[f"{operation}_0_basics/time_s"][0]
        for operation in ("save", "save_blocking", "save_background")
    )
    assert blocking + background <= whole <= 1.05 * (blocking + background) + 0.001


@pytest.mark.slow
def test_bytes_are_exact(round_trip, tree):
    results = round_trip().results
    expected = 512 * 256 * 2 + 64 * 64 * 4
    assert tree_bytes(tree) == expected
    assert results["save_5_inventory/operation_bytes"] == (expected, "bytes")
    assert results["load_5_inventory/operation_bytes"] == (expected, "bytes")


def test_async_enabled(round_trip):
    assert round_trip(async_enabled=False).operations == {"save", "save_blocking", "load"}


@pytest.mark.slow
def test_use_ocdbt(round_trip):
    assert round_trip(use_ocdbt=True).files("manifest.ocdbt")
    assert not round_trip(use_ocdbt=False).files("*.ocdbt")


@pytest.mark.slow
def test_use_zarr3(round_trip):
    third = round_trip(use_ocdbt=False, use_zarr3=True)
    second = round_trip(use_ocdbt=False, use_zarr3=False)
    assert (len(third.files("zarr.json")), len(third.files(".zarray"))) == (3, 0)
    assert (len(second.files("zarr.json")), len(second.files(".zarray"))) == (0, 3)


@pytest.mark.slow
def test_use_compression(round_trip, tree):
    compressed = round_trip(use_compression=True)
    plain = round_trip(use_compression=False)
    assert compressed.num_bytes < 0.85 * plain.num_bytes
    assert plain.num_bytes > tree_bytes(tree)


@pytest.mark.slow
def test_use_replica_parallel(round_trip):
    alone = round_trip(use_ocdbt=False, use_replica_parallel=False)
    shared = round_trip(use_ocdbt=False, use_replica_parallel=True)
    chunks = "nested.replicated/c/*/*"
    assert (len(alone.files(chunks)), len(shared.files(chunks))) == (1, 8)


@pytest.mark.slow
def test_enable_replica_parallel_separate_folder(round_trip):
    separate = round_trip(use_replica_parallel=True, enable_replica_parallel_separate_folder=True)
    together = round_trip(use_replica_parallel=True)
    assert separate.files("ocdbt.process_replica_*/manifest.ocdbt")
    assert not together.files("ocdbt.process_replica_*/manifest.ocdbt")


@pytest.mark.parametrize("option", [{"use_ocdbt": False}, {"use_replica_parallel": False}])
def test_separate_folders_need_ocdbt_and_parallel_replicas(option):
    given = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    assert SaveRestoreOptions(**given).is_valid()
    assert not SaveRestoreOptions(**{**given, **option}).is_valid()


@pytest.mark.slow
def test_use_load_and_broadcast(round_trip):
    event = "load_3_load_breakdown/broadcast_s"
    assert event in round_trip(use_load_and_broadcast=True).results
    assert event not in round_trip(use_load_and_broadcast=False).results


@pytest.mark.slow
def test_chunk_byte_size(round_trip):
    whole = round_trip(use_ocdbt=False)
    chunked = round_trip(use_ocdbt=False, chunk_byte_size=8192)
    shard_bytes = 512 // 4 * 256 * 2
    assert len(whole.files("sharded/c/*/*")) == 4
    assert len(chunked.files("sharded/c/*/*")) == 4 * shard_bytes // 8192


LARGEST_SHARD_GIB = 512 // 4 * 256 * 2 / 2**30


# Orbax abandons its coroutines when it refuses a chunk, and TensorStore, done with another
# chunk, finds the event loop closed.
@pytest.mark.slow
@pytest.mark.usefixtures("abandoned_reads")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("option", ["save_concurrent_gb", "restore_concurrent_gb"])
def test_concurrency_limits_reach_orbax(round_trip, option):
    round_trip(**{option: 2 * LARGEST_SHARD_GIB})
    with pytest.raises(ValueError, match="Requested more bytes than we reserved"):
        round_trip(**{option: LARGEST_SHARD_GIB / 8})
    gc.collect()


@pytest.mark.slow
def test_metric_tracemalloc_enabled(round_trip):
    metric = "save_7_memory/tracemalloc_peak_diff_mb"
    assert metric in round_trip(metric_tracemalloc_enabled=True).results
    assert metric not in round_trip(metric_tracemalloc_enabled=False).results


def test_a_wrong_restore_fails_the_repeat(tree, tmp_path):
    def refuse(restored, expected):
        raise VerificationError("differs")

    context = TestContext(
        pytree=tree, path=epath.Path(tmp_path), options=SaveRestoreOptions(), verifier=refuse
    )
    with pytest.raises(VerificationError):
        SaveRestore().test_fn(context)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("resharding", "load"),
        ("restore_and_broadcast", "load"),
        ("replica_parallel_multislice", "save"),
        ("train_interference", "save"),
    ],
)
def test_benchmarks_that_inherit_its_options_heed_them(tmp_path, name, operation):
    outcomes = run_benchmark(
        name,
        str(tmp_path),
        options={"metric_tracemalloc_enabled": [False, True], "use_ocdbt": False},
        checkpoint={"spec": {"w": {"dtype": "float32", "shape": [64, 64], "sharding": ["model"]}}},
        mesh={"mesh_axes": ["replica", "model"], "ici_parallelism": {"replica": 2, "model": 4}},
    )
    metric = "7_memory/tracemalloc_peak_diff_mb"
    measured = [
        {(sample.operation, sample.metric) for sample in outcome.samples} for outcome in outcomes
    ]
    assert [(operation, metric) in found for found in measured] == [False, True]
    assert {"zarr3_chunk"} <= set(outcomes[0].record.inventory.kinds)
