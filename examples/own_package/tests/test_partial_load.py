import pytest
from my_benchmarks.partial_load import PartialLoad

from orbax_bench_core import UserError

ARRAY = {"dtype": "float32", "shape": [64, 64], "sharding": ["fsdp"]}
CHECKPOINT = {"spec": {"params": {"w": ARRAY}, "opt_state": {"mu": ARRAY, "nu": ARRAY}}}
MESH = {"mesh_axes": ["fsdp"], "ici_parallelism": {"fsdp": 8}}


def test_it_measures_and_verifies(run_benchmark):
    (outcome,) = run_benchmark(PartialLoad, checkpoint=CHECKPOINT, mesh=MESH)
    outcome.assert_verified()
    outcome.assert_measured("load_all", "load_part")


def test_the_part_is_smaller_than_the_whole(run_benchmark):
    (outcome,) = run_benchmark(PartialLoad, checkpoint=CHECKPOINT, mesh=MESH)
    size = "5_inventory/operation_bytes"
    part, whole = (outcome.value(operation, size) for operation in ("load_part", "load_all"))
    assert 0 < part < whole


def test_an_option_may_be_swept(run_benchmark):
    outcomes = run_benchmark(
        PartialLoad, options={"part": ["params", "opt_state"]}, checkpoint=CHECKPOINT, mesh=MESH
    )
    assert [outcome.record.status for outcome in outcomes] == ["passed", "passed"]


def test_a_part_that_is_not_there_fails_the_repeat(run_benchmark):
    (outcome,) = run_benchmark(
        PartialLoad, options={"part": "absent"}, checkpoint=CHECKPOINT, mesh=MESH
    )
    assert outcome.record.error.type == "KeyError"


def test_an_unknown_option_is_refused(run_benchmark):
    with pytest.raises(UserError, match="did you mean 'part'"):
        run_benchmark(PartialLoad, options={"parts": "params"}, checkpoint=CHECKPOINT, mesh=MESH)
