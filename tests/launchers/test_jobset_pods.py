"""Pods of a JobSet as processes of this machine, by the manifest's command and variables."""

import json
import re
import shutil
from pathlib import Path

import pytest

from orbax_bench_core.launchers import make_launcher
from tests.support.processes import free_address, plain_environment, start_cli

EXAMPLES = Path(__file__).parents[2] / "examples"
IMAGE = f"registry.example/bench@sha256:{'a1' * 32}"
SUITE = """
suite_name: own
num_repeats: 1
execution: {warmups: 0, retries: 0}
checkpoint_config: {spec: {a: {dtype: float32, shape: [8, 2], sharding: [x, null]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 4}}
benchmarks: [{generator: save_restore_benchmark.SaveRestoreBenchmark, options: {}}]
"""
LABELS = {
    "jobset.sigs.k8s.io/job-index": "0",
    "jobset.sigs.k8s.io/restart-attempt": "1",
}


def variables(container, secret, index):
    """Returns what Kubernetes would set in one container."""
    found = {"JOB_COMPLETION_INDEX": str(index)}
    for each in container["env"]:
        source = each.get("valueFrom", {})
        if "secretKeyRef" in source:
            assert source["secretKeyRef"]["name"] == secret["metadata"]["name"]
            found[each["name"]] = secret["stringData"][source["secretKeyRef"]["key"]]
        elif "fieldRef" in source:
            path = source["fieldRef"]["fieldPath"]
            label = re.fullmatch(r"metadata\.labels\['(.*)'\]", path)
            found[each["name"]] = LABELS[label[1]] if label else f"node-{index}"
        else:
            found[each["name"]] = each["value"]
    return found


@pytest.mark.nightly
def test_the_pods_of_a_manifest_are_one_run(tmp_path):
    port = free_address().partition(":")[2]
    suites, out = tmp_path / "suites", tmp_path / "volume" / "run"
    suites.mkdir()
    out.parent.mkdir()
    (suites / "own.yaml").write_text(SUITE)
    shutil.copy(EXAMPLES / "save_restore_benchmark.py", suites)
    command = ("orbax-bench", "run", str(suites / "own.yaml"), "-o", str(out))
    launcher = make_launcher(
        "jobset",
        [f"volume=runs:{tmp_path}/volume", f"port={port}"],
        (),
        name="ob-own",
        command=(*command, "--no-limits", "--no-lock"),
        output_directory=str(out),
        hosts=2,
        image=IMAGE,
    )
    launcher.shipment.send()
    shutil.rmtree(suites)  # a pod has none of it
    token = "5" * 64
    secret = launcher.secret(token)
    (job,) = launcher.manifest()["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    # The name of host 0 is one of the cluster.
    given = plain_environment(ORBAX_BENCH_HEAD_HOST="127.0.0.1")
    pods = [
        start_cli(
            *container["command"][1:],
            environment=given | variables(container, secret, index),
            folder=tmp_path,
        )
        for index in range(2)
    ]
    try:
        said = [pod.communicate(timeout=240)[0] for pod in pods]
    finally:
        for pod in pods:
            pod.kill()
    assert [pod.returncode for pod in pods] == [0, 0], "\n".join(said)
    assert "host 0 of 2, head 127.0.0.1" in said[0]
    records = [json.loads(path.read_text()) for path in out.glob("records/*/*/host_*.json")]
    hosts = {record["host"]: record["provenance"]["host"] for record in records}
    assert {host: found["node"] for host, found in hosts.items()} == {0: "node-0", 1: "node-1"}
    assert {found["restarts"] for found in hosts.values()} == {"1"}
    left = [path for path in out.rglob("*") if path.is_file()]
    assert [path for path in left if token.encode() in path.read_bytes()] == []
