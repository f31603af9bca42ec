"""Real Slurm, on one node and on three hosts with addresses of their own, with real JAX."""

import signal
import subprocess
import sys

import pytest

from tests.support import slurm
from tests.support.launching import (
    LONGEST_S,
    QUICK,
    launch,
    launched,
    plain,
    records,
    wait_until,
    write_suite,
)
from tests.support.namespaces import Lab

pytestmark = pytest.mark.nightly

FAST = ("--set", "poll_s=0.3", "--set", "exclusive=false")


def cluster_or_skip(*, several):
    if reason := slurm.why_not(several=several):
        pytest.skip(f"no Slurm here: {reason}")


@pytest.fixture(scope="module")
def three():
    cluster_or_skip(several=True)
    with Lab(3) as lab, slurm.SlurmCluster(lab) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def one():
    cluster_or_skip(several=False)
    with slurm.SlurmCluster() as cluster:
        yield cluster


def on(cluster):
    return {"inside": cluster.inside(), "environment": cluster.environment}


def jobs(cluster):
    return cluster.ask("squeue", "-h", "-o", "%i %T").split("\n")[:-1]


def agents(lab, host):
    """Returns the commands that a host runs, without their workers."""
    return [
        one for one in lab.processes(host) if one.cmdline()[2:4] == ["orbax_bench_core.cli", "run"]
    ]


def test_three_nodes_are_the_hosts_of_one_run(three, tmp_path):
    suite, out = write_suite(tmp_path, devices=3), tmp_path / "the run"
    words = (suite, "-o", out, "--on", "slurm", "--hosts", 3, *FAST, "--set", "time=1:00:00")
    done = launch(*words, *QUICK, **on(three))
    assert done.returncode == 0, done.stdout + done.stderr + three.logs()
    found = records(out)
    assert sorted(record["host"] for record in found) == [0, 1, 2]
    assert {record["status"] for record in found} == {"passed"}
    names = {record["host"]: record["provenance"]["host"]["name"] for record in found}
    assert names == {0: "ob0", 1: "ob1", 2: "ob2"}
    assert "cluster: Slurm, host 0 of 3, head ob0:" in done.stdout
    assert "host 2: joined process 0" in done.stdout
    script = (out / "launch" / "ob-tiny-suite.sbatch").read_text()
    assert "TOKEN" not in script
    again = launch(*words, *QUICK, **on(three))
    assert again.returncode == 0, again.stdout + again.stderr
    assert records(out) == found


def test_a_job_that_is_queued_again_goes_on_where_it_was(three, tmp_path):
    suite, out, log = write_suite(tmp_path, repeats=12, devices=3), tmp_path / "run", tmp_path / "l"
    words = (suite, "-o", out, "--on", "slurm", "--hosts", 3, *FAST)
    process = launched(*words, *QUICK, log=log, **on(three))
    wait_until(lambda: len(records(out)) >= 6, lambda: log.read_text() + three.logs())
    (job,) = (line.split()[0] for line in jobs(three))
    three.ask("scontrol", "requeue", job)
    before = records(out)
    assert process.wait(LONGEST_S) == 0, log.read_text() + three.logs()
    after = records(out)
    assert len(before) < 36
    assert len(after) == 36
    assert {record["status"] for record in after} == {"passed"}
    kept = [record for record in after if record in before]
    assert len(kept) >= 3
    assert "restarted 1x" in log.read_text()


def test_ending_the_command_cancels_the_job(three, tmp_path):
    suite, out, log = write_suite(tmp_path, repeats=60, devices=3), tmp_path / "run", tmp_path / "l"
    words = (suite, "-o", out, "--on", "slurm", "--hosts", 3, *FAST)
    process = launched(*words, *QUICK, log=log, **on(three))
    wait_until(lambda: len(records(out)) >= 3, lambda: log.read_text() + three.logs())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    assert jobs(three) == []
    assert "interrupted: cancelling job" in log.read_text()


def test_what_slurm_refuses_is_one_message(one, tmp_path):
    words = (write_suite(tmp_path), "-o", tmp_path / "run", "--on", "slurm", *FAST)
    done = launch(*words, "--set", "partition=gpu", **on(one))
    assert done.returncode == 2
    assert "error: Slurm refuses the job: sbatch: error: invalid partition" in done.stderr


def test_why_a_job_waits_is_told(one, tmp_path):
    log = tmp_path / "log"
    words = (write_suite(tmp_path), "-o", tmp_path / "run", "--on", "slurm", *FAST)
    process = launched(*words, "--hosts", 2, log=log, **on(one))
    wait_until(lambda: "is pending (PartitionNodeLimit)" in log.read_text(), log.read_text)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert jobs(one) == []


def test_a_host_that_is_killed_leaves_the_others_alone(three, tmp_path):
    suite, out, log = write_suite(tmp_path, repeats=12, devices=3), tmp_path / "run", tmp_path / "l"
    words = (suite, "-o", out, "--on", "slurm", "--hosts", 3, *FAST)
    process = launched(*words, *QUICK, log=log, **on(three))
    wait_until(lambda: len(records(out)) >= 3, lambda: log.read_text() + three.logs())
    for one_of_host in agents(three.lab, 1):
        one_of_host.kill()
    assert process.wait(LONGEST_S) == 1, log.read_text() + three.logs()
    assert "HostLost" in log.read_text()
    done = launch(*words, *QUICK, **on(three))
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(records(out)) == 36


def test_one_node_is_a_run_without_a_cluster(one, tmp_path):
    out = tmp_path / "run"
    words = (write_suite(tmp_path), "-o", out, "--on", "slurm", *FAST)
    done = launch(*words, *QUICK, **on(one))
    assert done.returncode == 0, done.stdout + done.stderr + one.logs()
    assert [record["status"] for record in records(out)] == ["passed"]


def test_the_exit_code_is_that_of_the_run(one, tmp_path):
    suite, out = write_suite(tmp_path), tmp_path / "run"
    suite.write_text(suite.read_text().replace("save_restore", "single_replica"))
    done = launch(suite, "-o", out, "--on", "slurm", *FAST, *QUICK, **on(one))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "has ended: failed, exit code 1" in done.stderr


def test_two_tasks_of_srun_are_hosts(one, tmp_path):
    suite, out = write_suite(tmp_path), tmp_path / "run"
    command = (sys.executable, "-m", "orbax_bench_core.cli", "run", str(suite), "-o", str(out))
    done = subprocess.run(
        ["srun", "-n", "2", *command, *QUICK[1:]],
        env=plain(one.environment, ORBAX_BENCH_HEAD_HOST="127.0.0.1"),
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr + one.logs()
    assert sorted(record["host"] for record in records(out)) == [0, 1]
