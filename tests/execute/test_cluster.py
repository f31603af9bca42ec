"""The place of a process in a cluster, from variables as launchers were seen to set them."""

import json
import os
import queue

import pytest

from orbax_bench_core.environments import Interpreter
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import LocalHost, detect_cluster, without_cluster
from orbax_bench_core.worker import WorkerSetup

JAX = {
    "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1234",
    "JAX_NUM_PROCESSES": "4",
    "JAX_PROCESS_ID": "3",
}
OWN = {
    "ORBAX_BENCH_HEAD": "head:7000",
    "ORBAX_BENCH_NUM_HOSTS": "2",
    "ORBAX_BENCH_HOST": "1",
}
JOBS = {
    "ORBAX_BENCH_HEAD": "ob-hosts-0-0.ob:8463",
    "ORBAX_BENCH_NUM_HOSTS": "8",
    "ORBAX_BENCH_HOSTS_PER_JOB": "4",
    "ORBAX_BENCH_JOB_INDEX": "1",
    "JOB_COMPLETION_INDEX": "3",
}
PAIRS = {
    **JOBS,
    "ORBAX_BENCH_NUM_HOSTS": "4",
    "ORBAX_BENCH_HOSTS_PER_JOB": "2",
    "JOB_COMPLETION_INDEX": "0",
}
SLURM = {
    "SLURM_JOB_ID": "4100",
    "SLURM_STEP_NODELIST": "node[001,007-015],x2",
    "SLURM_NTASKS": "3",
    "SLURM_PROCID": "2",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1207762944.0;tcp://10.0.0.7,172.17.0.1:54317",
}
TPU = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "t-0.svc,t-1.svc"}
SLICES = {
    **TPU,
    "MEGASCALE_NUM_SLICES": "2",
    "MEGASCALE_SLICE_ID": "1",
    "MEGASCALE_COORDINATOR_ADDRESS": "s-0:8080",
}


def vertex(kind, index, pools):
    cluster = {name: [f"{name}-{i}:2222" for i in range(n)] for name, n in pools.items()}
    return {
        "CLUSTER_SPEC": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
    }


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (JAX, "JAX_*, host 3 of 4, head 10.0.0.1:1234"),
        ({**JAX, "JAX_COORDINATOR_PORT": "99"}, "JAX_*, host 3 of 4, head 10.0.0.1:99"),
        ({**JAX, **SLURM, "SLURM_NTASKS": "4"}, "JAX_*, host 3 of 4, head 10.0.0.1:1234"),
        (
            {**JAX, "JAX_COORDINATOR_ADDRESS": "h", "JAX_COORDINATOR_PORT": "99"},
            "JAX_*, host 3 of 4, head h:99",
        ),
        ({**JAX, **OWN}, "ORBAX_BENCH_*, host 1 of 2, head head:7000"),
        (JOBS, "ORBAX_BENCH_*, host 7 of 8, head ob-hosts-0-0.ob:8463"),
        (SLURM, "Slurm, host 2 of 3, head node001:61444"),
        ({**SLURM, "ORBAX_BENCH_HEAD_HOST": "10.0.0.9"}, "Slurm, host 2 of 3, head 10.0.0.9:61444"),
        (OPEN_MPI, "Open MPI, host 1 of 2, head 10.0.0.7:65488"),
        (TPU, "TPU slice, host 1 of 2, head t-0.svc:8463"),
        (SLICES, "TPU slice, host 3 of 4, head s-0:8463"),
        ({**SLURM, **TPU}, "TPU slice, host 1 of 2, head t-0.svc:8463"),
        (
            vertex("workerpool1", 1, {"workerpool0": 1, "workerpool1": 2, "workerpool2": 1}),
            "Vertex AI, host 2 of 3, head workerpool0-0:8463",
        ),
        (
            {**vertex("workerpool0", 0, {"workerpool0": 1}), **TPU},
            "TPU slice, host 1 of 2, head t-0",
        ),
    ],
)
def test_variables_of_a_launcher_give_rank_size_and_head(variables, said):
    assert detect_cluster(variables).said.startswith(f"cluster: {said}")


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {**JAX, "ORBAX_BENCH_CLUSTER": "none"},
        {**JAX, "JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"},
        # A batch script, which runs once, and an interactive step of one task.
        {name: value for name, value in SLURM.items() if name != "SLURM_STEP_NODELIST"},
        {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"},
        vertex("workerpool2", 0, {"workerpool0": 1, "workerpool1": 1, "workerpool2": 1}),
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        # Pathways: one process has the devices of all hosts.
        {**JAX, "JAX_PLATFORMS": "proxy,cpu"},
    ],
)
def test_a_host_on_its_own_is_no_cluster(variables):
    assert detect_cluster(variables) is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({**JAX, "JAX_PROCESS_ID": "4"}, "this is host 4 of 4; hosts are numbered from 0 to 3"),
        ({**JAX, "JAX_PROCESS_ID": "-1"}, "JAX_PROCESS_ID: expected a number, got '-1'"),
        ({**JAX, "JAX_COORDINATOR_ADDRESS": "h"}, "JAX_COORDINATOR_ADDRESS=h has no port"),
        ({**JOBS, "JOB_COMPLETION_INDEX": ""}, "JOB_COMPLETION_INDEX: expected a number"),
        ({**PAIRS, **SLICES}, "says that this is host 2, and TPU_WORKER_ID=1 that it is host 3"),
        ({**JAX, "TPU_WORKER_ID": "2"}, "this is host 3, and TPU_WORKER_ID=2"),
        ({**JAX, **SLICES, "MEGASCALE_SLICE_ID": "0"}, "this is host 3, and TPU_WORKER_ID=1"),
        ({**JAX, **SLURM}, "JAX_* says that there are 4 hosts, and Slurm that there are 3"),
        (
            {**JAX, "JAX_PROCESS_ID": "1", **TPU},
            "JAX_* says that there are 4 hosts, and TPU slice that there are 2",
        ),
        ({"ORBAX_BENCH_CLUSTER": "gke"}, "ORBAX_BENCH_CLUSTER=gke: give none for this host"),
        ({"CLUSTER_SPEC": "{}"}, "CLUSTER_SPEC cannot be read: {}"),
        ({"CLUSTER_SPEC": "[" * 100_000}, "CLUSTER_SPEC cannot be read: [[["),
        (
            {
                "CLUSTER_SPEC": '{"cluster": {"workerpool0": ["a"], "workerpool1": 1}, '
                '"task": {"type": "workerpool0", "index": 0}}'
            },
            "CLUSTER_SPEC cannot be read",
        ),
        ({**JAX, "JAX_NUM_PROCESSES": "9" * 5000}, "PROCESSES: expected a number, got '999"),
        ({**JAX, "JAX_NUM_PROCESSES": "9" * 9}, "says 999999999 hosts and port"),
        ({**OPEN_MPI, "OMPI_MCA_orte_hnp_uri": ""}, "does not say on which host rank 0 runs"),
        ({"ORBAX_BENCH_NUM_HOSTS": "4"}, "NUM_HOSTS=4, and no variables tell of others"),
        ({**TPU, "ORBAX_BENCH_NUM_HOSTS": "4"}, "NUM_HOSTS=4, and TPU slice says 2"),
    ],
)
def test_a_wrong_variable_is_one_message(variables, message):
    with pytest.raises(UserError) as caught:
        detect_cluster(variables)
    (problem,) = caught.value.problems
    assert message in str(problem)
    assert "--no-cluster" in str(problem)


@pytest.mark.parametrize(("variables", "size"), [({}, "1"), (TPU, "2")])
def test_a_launcher_that_leaves_the_place_to_others_may_say_how_many_hosts_there_are(
    variables, size
):
    found = detect_cluster({**variables, "ORBAX_BENCH_NUM_HOSTS": size})
    assert (1 if found is None else found.size) == int(size)


def test_the_place_and_the_token_are_taken_out_of_an_environment_and_the_rest_stays():
    kept = {"PATH": "/bin", "TPU_WORKER_ID": "1", "JAX_PLATFORMS": "cpu", "SLURM_JOB_ID": "7"}
    private = {**OWN, **JOBS, **JAX, **OPEN_MPI, "ORBAX_BENCH_TOKEN": "t", "SLURM_PROCID": "1"}
    private |= {"ORBAX_BENCH_NOTIFY": "https://h/S3CR3T", "ORBAX_BENCH_NOTIFY_STATE": "gs://b"}
    assert without_cluster({**kept, **private}) == kept


def test_a_worker_is_started_without_the_place_of_its_host_and_without_the_token(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nenv\n")
    python.chmod(0o755)
    inbox = queue.SimpleQueue()
    own = {"mine": Interpreter(str(python), {})}
    (worker,) = LocalHost(module="tests.support.fake_worker", interpreters=own).launch(
        [WorkerSetup(root=str(tmp_path), x64=False, num_devices=1)],
        environment={**os.environ, **JAX, **SLURM, "ORBAX_BENCH_TOKEN": "t", "KEPT": "yes"},
        python="mine",
        logs=[tmp_path / "log"],
        inbox=inbox,
    )
    assert inbox.get(timeout=60) == (0, b"")
    worker.stop()
    names = {line.partition("=")[0] for line in (tmp_path / "log").read_text().splitlines()}
    assert "KEPT" in names
    assert names.isdisjoint({*JAX, "SLURM_PROCID", "SLURM_STEP_NODELIST", "ORBAX_BENCH_TOKEN"})


ONE_PROCESS = """
suite_name: one process
execution: {timeout_s: 60, retries: 0, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.mark.slow
def test_a_point_of_one_process_does_not_wait_for_the_peers_of_its_orchestrator(
    suite_run, monkeypatch
):
    for name, value in {**JAX, "JAX_PROCESS_ID": "0"}.items():
        monkeypatch.setenv(name, value)
    run = suite_run(ONE_PROCESS)
    code, output = run.run("--no-cluster")
    assert code == 0, output
    assert run.statuses() == ["passed"]
