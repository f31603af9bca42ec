"""Each option of `array_handler` changes what lies on storage."""

import pytest

from orbax_bench_core.authoring import UnmetNeed
from orbax_bench_core.benchmarks.array_handler import ArrayHandler

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
def test_use_colocated_python(run):
    assert run(ArrayHandler, use_colocated_python=True).verified


@pytest.mark.slow
def test_an_array_of_that_name_is_needed(run):
    with pytest.raises(UnmetNeed, match="an array called 'array'"):
        run(ArrayHandler, spec={"w": {"dtype": "float32", "shape": [8]}})
