"""One suite measured with the oldest Orbax that has the v1 API, one of the middle, and the newest.

Each has an environment of its own, made here. What is measured is the same for all of them, and so
is what they have to save.
"""

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from orbax_bench_core.environments import OLDEST_JAX, OLDEST_ORBAX, releases
from tests.support.processes import run_cli

pytestmark = pytest.mark.nightly

MIDDLE = "0.11.32"
SUITE = """
suite_name: releases
num_repeats: 1
execution: {{warmups: 0}}
checkpoint_config:
  spec:
    sharded: {{dtype: bfloat16, shape: [64, 32], sharding: [data, null]}}
    replicated: {{dtype: float32, shape: [64, 64]}}
    step: int
    name: str
mesh_config: {{mesh_axes: [replica, data], ici_parallelism: {{replica: 2, data: 2}}}}
environments:
- {{name: oldest, requirements: ["orbax-checkpoint=={oldest}", "jax=={jax}"]}}
- {{name: middle, requirements: ["orbax-checkpoint=={middle}"]}}
- {{name: newest, requirements: ["orbax-checkpoint=={newest}"]}}
benchmarks:
- generator: save_restore
  options:
    async_enabled: [true, false]
    save_concurrent_gb: 1
    restore_concurrent_gb: 1
- generator: save_restore
  options: {{use_ocdbt: false, use_zarr3: false, use_replica_parallel: [false, true]}}
- generator: save_restore
  options: {{use_ocdbt: false, chunk_byte_size: 256, use_load_and_broadcast: [false, true]}}
- generator: train_interference
  options: {{steps_before: 3, steps_after: 1, matrix_size: 8}}
"""


@pytest.fixture(scope="module")
def newest():
    ours = importlib.metadata.version("orbax-checkpoint")
    return str(releases("orbax-checkpoint", since=ours)[-1])


@pytest.fixture(scope="module")
def run(tmp_path_factory, newest):
    folder = tmp_path_factory.mktemp("a suite")
    suite = SUITE.format(oldest=OLDEST_ORBAX, jax=OLDEST_JAX, middle=MIDDLE, newest=newest)
    (folder / "suite.yaml").write_text(suite)
    words = ("run", "suite.yaml", "-o", "out", "--no-lock", "--no-limits")
    plain = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    cache = str(folder / "cache")
    done = run_cli(*words, environment=plain, folder=folder, ORBAX_BENCH_CACHE=cache)
    assert "made in" in done.stdout + done.stderr, done.stdout + done.stderr
    return folder / "out"


@pytest.fixture(params=["oldest", "middle", "newest"])
def records(run, request):
    """The records of one environment."""
    found = map(json.loads, map(Path.read_text, run.glob("records/*/repeat_0/host_0.json")))
    return [one for one in found if one["point"]["environment"]["name"] == request.param]


def test_what_it_can_do_passes_and_is_verified(records):
    able = [one for one in records if not _is_about(one, use_load_and_broadcast=True)]
    assert [(one["status"], one["state"]["verified"]) for one in able] == [
        ("passed", "saved")
    ] * 6, [one["error"] for one in able]


def test_the_record_says_what_ran(records, request, newest):
    name = request.node.callspec.params["records"]
    expected = {"oldest": OLDEST_ORBAX, "middle": MIDDLE, "newest": newest}[name]
    versions = [one["provenance"]["versions"] for one in records]
    assert {one["orbax-checkpoint"] for one in versions} == {expected}
    jax = OLDEST_JAX if name == "oldest" else importlib.metadata.version("jax")
    assert {one["jax"] for one in versions} == {jax}
    ours = importlib.metadata.version("orbax-bench")
    assert {one["orbax-bench"] for one in versions} == {ours}


def test_an_option_that_it_lacks_is_a_failure_that_says_so(records, request):
    (about,) = [one for one in records if _is_about(one, use_load_and_broadcast=True)]
    if request.node.callspec.params["records"] == "newest":
        assert about["status"] == "passed"
    else:
        found = about["provenance"]["versions"]["orbax-checkpoint"]
        assert about["error"]["type"] == "UnmetNeed"
        assert about["error"]["message"] == (
            "use_load_and_broadcast: true needs orbax-checkpoint >= 0.11.34; this environment has "
            f"{found}, which always does as with use_load_and_broadcast: false"
        )


@pytest.mark.parametrize("metric", ["2_save_breakdown/", "6_tensorstore/", "7_memory/"])
def test_every_kind_of_collector_measures(records, metric):
    (about,) = [one for one in records if _is_about(one, async_enabled=False)]
    assert [one for one in about["samples"] if one["metric"].startswith(metric)]


def _is_about(record, **option):
    return option.items() <= record["point"]["options"].items()
