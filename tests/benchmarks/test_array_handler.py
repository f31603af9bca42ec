"""Each option of `array_handler` changes what lies on storage."""

import sys

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.array_handler import ArrayHandler, ArrayHandlerOptions

STAGES = ["serialize", "merge_ocdbt", "metadata_validation", "deserialize"]


@pytest.mark.slow
def test_measures_every_stage(run):
    outcome = run(ArrayHandler)
    assert outcome.blocks == STAGES
    assert outcome.prepared == ["deserialize"]
    assert outcome.verified
    for operation in ("serialize", "deserialize"):
        assert outcome.value(operation, "5_inventory/operation_bytes") == 512 * 256 * 2


@pytest.mark.slow
def test_only_the_array_is_written(run):
    outcome = run(ArrayHandler, use_ocdbt=False)
    assert [path.name for path in outcome.folder.iterdir() if path.is_dir()] == ["array"]


@pytest.mark.slow
def test_use_ocdbt(run):
    plain = run(ArrayHandler, use_ocdbt=False)
    assert plain.blocks == [stage for stage in STAGES if stage != "merge_ocdbt"]
    assert not plain.files("*.ocdbt")
    assert run(ArrayHandler, use_ocdbt=True).files("manifest.ocdbt", "ocdbt.process_0")


@pytest.mark.slow
@pytest.mark.parametrize(("zarr3", "name"), [(True, "zarr.json"), (False, ".zarray")])
def test_use_zarr3(run, zarr3, name):
    outcome = run(ArrayHandler, use_ocdbt=False, use_zarr3=zarr3)
    assert [path.name for path in outcome.files("*z*arr*")] == [name]


@pytest.mark.slow
@pytest.mark.parametrize(("parallel", "chunks"), [(False, 4), (True, 8)])
def test_use_replica_parallel(run, parallel, chunks):
    outcome = run(ArrayHandler, use_ocdbt=False, use_replica_parallel=parallel)
    # Without OCDBT a part of a replica is a chunk of its own.
    assert len(outcome.files("?.0", "array")) == chunks


@pytest.mark.slow
def test_enable_replica_parallel_separate_folder(run):
    separate = run(
        ArrayHandler, use_replica_parallel=True, enable_replica_parallel_separate_folder=True
    )
    assert separate.files("manifest.ocdbt", "ocdbt.process_replica_0")


@pytest.mark.parametrize("option", [{"use_ocdbt": False}, {"use_replica_parallel": False}])
def test_separate_folders_need_ocdbt_and_parallel_replicas(option):
    given = {"use_replica_parallel": True, "enable_replica_parallel_separate_folder": True}
    assert ArrayHandlerOptions(**given).is_valid()
    assert not ArrayHandlerOptions(**{**given, **option}).is_valid()


@pytest.mark.parametrize("store", [True, False])
def test_use_metadata_store(run, store):
    outcome = run(ArrayHandler, use_metadata_store=store)
    assert bool(outcome.files("process_0", "array_metadatas")) is store


def test_use_colocated_python_names_its_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as if it were not installed
    with pytest.raises(UnmetNeed, match=r"orbax-bench\[pathways\]"):
        run(ArrayHandler, use_colocated_python=True)


@pytest.mark.slow
def test_use_colocated_python(run):
    assert run(ArrayHandler, use_colocated_python=True).verified


@pytest.mark.slow
def test_an_array_of_that_name_is_needed(run):
    with pytest.raises(UnmetNeed, match="an array called 'array'"):
        run(ArrayHandler, spec={"w": {"dtype": "float32", "shape": [8]}})
