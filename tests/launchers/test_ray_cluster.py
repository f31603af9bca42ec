"""Real Ray on three nodes with addresses of their own, with real JAX."""

import signal
import time

import psutil
import pytest

from tests.support import ray_cluster
from tests.support.launching import QUICK, launch, launched, records, write_suite
from tests.support.namespaces import Lab, why_not
from tests.support.processes import LONGEST_S, wait_until

pytestmark = pytest.mark.nightly

LABELS = "ray.io/tpu-slice-name=s,ray.io/tpu-worker-id={worker},ray.io/tpu-topology=2x4"
LABELS += ",ray.io/tpu-pod-type=v6e-8,ray.io/accelerator-type=TPU-V6E"


def as_tpu_host(worker):
    """Options with which a node counts as a host of a TPU slice, in Ray's own labels."""
    head = ', "TPU-v6e-8-head": 1' if worker == 0 else ""
    resources = '{"TPU": 4' + head + "}"
    return ("--resources", resources, "--labels", LABELS.format(worker=worker))


@pytest.fixture(scope="module")
def cluster():
    if reason := why_not() or ray_cluster.why_not_installed():
        pytest.skip(f"no Ray cluster here: {reason}")
    with Lab(3) as lab, ray_cluster.RayCluster(lab) as cluster:
        cluster.start(0)
        # A slice whose hosts are numbered the other way round than their addresses.
        cluster.start(1, *as_tpu_host(1))
        cluster.start(2, *as_tpu_host(0))
        yield cluster


def on(cluster):
    return {"inside": cluster.lab.inside(0), "environment": cluster.environment}


def place(cluster, *more):
    return ("--on", "ray", "--set", f"address={cluster.address}", *more)


def host_names(out):
    return {record["host"]: record["provenance"]["host"]["name"] for record in records(out)}


def commands(lab):
    """Returns the processes of hosts and of their workers."""
    return [
        one
        for one in lab.processes()
        if any("orbax_bench_core" in word for word in one.cmdline())
        and "launch" not in one.cmdline()
    ]


def test_three_nodes_are_the_hosts_of_one_run(cluster, tmp_path):
    suite, out = write_suite(tmp_path, devices=3), tmp_path / "run"
    words = (suite, "-o", out, *place(cluster, "--hosts", 3), *QUICK)
    done = launch(*words, **on(cluster))
    assert done.returncode == 0, done.stdout + done.stderr
    found = records(out)
    assert {record["status"] for record in found} == {"passed"}
    assert sorted(host_names(out)) == [0, 1, 2]
    assert set(host_names(out).values()) == {"ob0", "ob1", "ob2"}
    assert "host 2: joined process 0" in done.stdout
    again = launch(*words, **on(cluster))
    assert again.returncode == 0, again.stdout + again.stderr
    assert records(out) == found


def test_ranks_are_those_of_the_hosts_in_their_slice(cluster, tmp_path):
    suite, out = write_suite(tmp_path, devices=2), tmp_path / "run"
    tpu = ("--tpu", "v6e:2x4:ct6e-standard-4t")
    done = launch(suite, "-o", out, *place(cluster, *tpu), *QUICK, **on(cluster))
    assert done.returncode == 0, done.stdout + done.stderr
    assert host_names(out) == {0: "ob2", 1: "ob1"}


def test_too_few_nodes_are_named(cluster, tmp_path):
    few = place(cluster, "--hosts", 4, "--set", "wait_s=2")
    done = launch(write_suite(tmp_path), "-o", tmp_path / "run", *few, **on(cluster))
    assert done.returncode == 2
    assert "has not had 4 different nodes, each with CPU 1 free, within 2 s; its 3 nodes" in (
        done.stderr
    )


def test_no_cluster_is_one_message(cluster, tmp_path):
    nowhere = ("--on", "ray", "--set", "address=10.77.0.10:9")
    done = launch(write_suite(tmp_path), "-o", tmp_path / "run", *nowhere, **on(cluster))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error: cannot reach a Ray cluster at 10.77.0.10:9" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "end", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.extended)]
)
def test_hosts_end_with_the_command(cluster, tmp_path, end):
    suite, out, log = write_suite(tmp_path, repeats=60, devices=3), tmp_path / "run", tmp_path / "l"
    words = (suite, "-o", out, *place(cluster, "--hosts", 3), *QUICK)
    process = launched(*words, log=log, **on(cluster))
    wait_until(lambda: len(records(out)) >= 3, log.read_text)
    running = commands(cluster.lab)
    assert len(running) >= 6
    process.send_signal(end)
    assert process.wait(90) == (130 if end == signal.SIGTERM else -signal.SIGKILL)
    _, alive = psutil.wait_procs(running, timeout=60)
    assert alive == []


@pytest.mark.extended
def test_a_node_that_is_killed_is_a_lost_host(cluster, tmp_path):
    suite, out, log = write_suite(tmp_path, repeats=12, devices=3), tmp_path / "run", tmp_path / "l"
    words = (suite, "-o", out, *place(cluster, "--hosts", 3), *QUICK)
    process = launched(*words, log=log, **on(cluster))
    wait_until(lambda: len(records(out)) >= 6, log.read_text)
    cluster.kill(1)
    assert process.wait(LONGEST_S) == 1, log.read_text()
    said = log.read_text()
    assert "HostLost" in said
    assert f"Ray has lost it at {cluster.lab.address(1)}" in said
    passed = [record for record in records(out) if record["status"] == "passed"]
    assert 6 <= len(passed) < 36
    cluster.start(1, *as_tpu_host(1))
    done = launch(*words, **on(cluster))
    assert done.returncode == 0, done.stdout + done.stderr
    after = records(out)
    assert [record for record in passed if record not in after] == []
    assert len([record for record in after if record["status"] == "passed"]) == 36


def test_nothing_of_earlier_runs_is_left(cluster):
    deadline = time.monotonic() + 60
    while (left := commands(cluster.lab)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
