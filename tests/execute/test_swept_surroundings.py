"""Each axis of `execution` that a suite may sweep, by what the worker's own process shows."""

import re

import pytest

SUITE = """
suite_name: axes
num_repeats: 1
execution: {{retries: 0, warmups: 0, {axes}}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [256, 256], sharding: [d]}}}}}}
mesh_config: {{mesh_axes: [d], ici_parallelism: {{d: 2}}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""


def tunables(record):
    return record["provenance"]["environment"]["GLIBC_TUNABLES"]


def resident(record):
    return [
        sample["value"]
        for sample in record["samples"]
        if (sample["operation"], sample["metric"]) == ("load", "6_io/resident_share_before")
    ]


EVIDENCE = {
    "host_memory": (
        tunables,
        {
            "reused": lambda found: "trim_threshold=9999999999" in found,
            "fresh": lambda found: "trim_threshold=0" in found,
            "default": lambda found: found == "",
        },
    ),
    "cache": (resident, {"cold": lambda found: found == [0], "warm": lambda found: found == [1]}),
    "processes": (
        lambda record: record["provenance"]["devices"]["processes"],
        {1: lambda found: found == 1, 2: lambda found: found == 2},
    ),
}
"""Where the process shows a value, and what it shows under each."""


@pytest.mark.slow
@pytest.mark.parametrize("axes", [("host_memory", "cache"), ("processes",)], ids=" ".join)
def test_all_values_of_an_axis_arrive_in_the_worker(suite_run, axes):
    given = ", ".join(f"{axis}: [{', '.join(map(str, EVIDENCE[axis][1]))}]" for axis in axes)
    run = suite_run(SUITE.format(axes=given))
    code, output = run.run()
    assert code == 0, output
    assert "cache" not in axes or re.search(r"^cold +fresh ", output, re.MULTILINE)
    seen = {axis: set() for axis in axes}
    for record in run.records().values():
        point = record["point"]
        for axis in axes:
            shown, wanted = EVIDENCE[axis]
            value = point["processes"] if axis == "processes" else point["conditions"][axis]
            assert wanted[value](shown(record)), (value, shown(record))
            seen[axis].add(value)
        # Growth of memory is left out where the allocator keeps pages.
        found = {sample["metric"] for sample in record["samples"]}
        reused = point["conditions"]["host_memory"] == "reused"
        assert ("0_basics/host_rss_diff_mb" in found) != reused
        assert ("under host_memory: reused" in str(record["notes"])) == reused
    assert seen == {axis: set(EVIDENCE[axis][1]) for axis in axes}


@pytest.mark.nightly
@pytest.mark.parametrize(("x64", "status"), [("true", "passed"), ("false", "failed")])
def test_defect_32_64_bit_types_are_a_setting(suite_run, x64, status):
    suite = SUITE.replace("{axes}", f"x64: {x64}").replace("float32", "float64")
    run = suite_run(suite.format())
    run.run()
    [record] = run.records().values()
    assert record["status"] == status
