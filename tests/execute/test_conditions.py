"""Conditions of a point, end to end."""

import pytest

pytestmark = pytest.mark.slow

SUITE = """
suite_name: conditions
execution: {{retries: 0, warmups: 0, {execution}}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [256, 256]}}}}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""


def values(record, operation, metric):
    return [
        sample["value"]
        for sample in record["samples"]
        if (sample["operation"], sample["metric"]) == (operation, metric)
    ]


def test_cold_and_warm_loads_are_points_of_their_own(suite_run):
    run = suite_run(SUITE.format(execution="cache: [cold, warm]"))
    code, output = run.run()
    assert code == 0, output
    shares = {
        record["point"]["conditions"]["cache"]: values(record, "load", "6_io/resident_share_before")
        for record in run.records().values()
    }
    assert shares == {"cold": [0.0], "warm": [1.0]}
    assert "cache=cold" in output


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("host_memory", "setting"),
    [("reused", "trim_threshold=9999999999"), ("fresh", "trim_threshold=0"), ("default", "")],
)
def test_the_allocator_is_set_and_stated(suite_run, host_memory, setting):
    run = suite_run(SUITE.format(execution=f"host_memory: {host_memory}"))
    assert run.run()[0] == 0
    [record] = run.records().values()
    tunables = record["provenance"]["environment"]["GLIBC_TUNABLES"]
    assert setting in tunables
    assert bool(tunables) == (host_memory != "default")
    assert record["point"]["conditions"]["host_memory"] == host_memory


@pytest.mark.nightly
@pytest.mark.parametrize(("x64", "dtype"), [("true", "passed"), ("false", "failed")])
def test_defect_32_64_bit_types_are_a_setting(suite_run, x64, dtype):
    suite = SUITE.format(execution=f"x64: {x64}").replace("float32", "float64")
    run = suite_run(suite)
    run.run()
    [record] = run.records().values()
    assert record["status"] == dtype
