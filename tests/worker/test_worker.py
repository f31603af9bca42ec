"""The worker's command, as a launcher on other machines would start it."""

import json
import os
import subprocess
import sys

import pytest

from orbax_bench_core.config import CheckpointConfig, MeshConfig
from orbax_bench_core.worker.protocol import Task, WorkerSetup
from tests.support.processes import free_address

CLUSTER = {
    "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1234",
    "JAX_NUM_PROCESSES": "4",
    "JAX_PROCESS_ID": "3",
}


@pytest.fixture
def setup(tmp_path):
    return WorkerSetup(root=str(tmp_path / "run"), x64=True, num_devices=1)


def test_a_cluster_is_read_from_jaxs_variables(setup):
    placed = setup.in_cluster(CLUSTER)
    assert (placed.coordinator, placed.num_processes, placed.process_id) == ("10.0.0.1:1234", 4, 3)


def test_the_orchestrators_word_goes_before_the_environments(setup):
    placed = setup.model_copy(update={"coordinator": "127.0.0.1:1"})
    assert placed.in_cluster(CLUSTER) == placed


def test_defect_31_half_a_cluster_is_an_error_and_not_a_single_process(setup):
    with pytest.raises(ValueError, match="needs JAX_PROCESS_ID as well"):
        setup.in_cluster({name: value for name, value in CLUSTER.items() if "ID" not in name})


@pytest.mark.slow
def test_workers_that_a_launcher_started_share_a_file_of_tasks(setup, make_point, tmp_path):
    point = make_point(
        options={},
        checkpoint=CheckpointConfig.model_validate(
            {"spec": {"w": {"dtype": "float32", "shape": [8, 4], "sharding": ["x"]}}}
        ),
        mesh=MeshConfig(mesh_axes=("x",), ici_parallelism={"x": 2}),
        processes=2,
    )
    task = Task(
        run_id="run", suite="s", config_hash="h", point=point, repeat=0, warmup=False, verify=True
    )
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(task.model_dump_json() + "\n")
    inherited = {name: v for name, v in os.environ.items() if name != "XLA_FLAGS"}
    cluster = {"JAX_COORDINATOR_ADDRESS": free_address(), "JAX_NUM_PROCESSES": "2"}
    command = ["-m", "orbax_bench_core.worker", "--setup", setup.model_dump_json()]
    workers = [
        subprocess.Popen(
            [sys.executable, *command, "--tasks", str(tasks)],
            env={**inherited, **cluster, "JAX_PROCESS_ID": str(process_id)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for process_id in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
    records = sorted((tmp_path / "run").glob("records/*/repeat_0/host_*.json"))
    found = [json.loads(path.read_text()) for path in records]
    assert [(r["host"], r["num_hosts"], r["status"]) for r in found] == [
        (0, 2, "passed"),
        (1, 2, "passed"),
    ]
