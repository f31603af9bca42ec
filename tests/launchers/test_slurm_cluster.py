"""The script of docs/launch/slurm.md on real Slurm: three hosts with addresses of their own."""

import subprocess

import pytest

from tests.support import slurm
from tests.support.blocks import blocks_of
from tests.support.launching import as_written, records, write_suite
from tests.support.namespaces import Lab
from tests.support.processes import LONGEST_S, plain_environment, wait_until

pytestmark = pytest.mark.nightly

SCRIPT, SUBMIT = blocks_of("docs/launch/slurm.md")


@pytest.fixture(scope="module")
def cluster():
    if reason := slurm.why_not(several=True):
        pytest.skip(f"no Slurm here: {reason}")
    with Lab(3) as lab, slurm.SlurmCluster(lab) as cluster:
        yield cluster


class Job:
    """The script of the page, submitted as the page says."""

    def __init__(self, cluster, folder, repeats):
        self.cluster, self.out, self.log = cluster, folder / "run", folder / "log"
        text = as_written(SCRIPT.text, write_suite(folder, repeats=repeats, devices=3), self.out)
        self.script = folder / SCRIPT.title
        self.script.write_text(text.replace("/shared/bench.log", str(self.log)))
        self.started = self.submit()

    def submit(self):
        return subprocess.Popen(
            [*self.cluster.inside(), *SUBMIT.text.split()[:-1], str(self.script)],
            env=plain_environment(self.cluster.environment),
        )

    def found(self):
        return records(self.out)

    def logs(self):
        return (self.log.read_text() if self.log.exists() else "") + self.cluster.logs()

    def await_records(self, number):
        wait_until(lambda: len(self.found()) >= number, self.logs)


def test_three_nodes_are_the_hosts_of_one_run_that_a_requeue_does_not_end(cluster, tmp_path):
    job = Job(cluster, tmp_path, repeats=12)
    job.await_records(6)
    cluster.ask("scontrol", "requeue", cluster.ask("squeue", "-h", "-o", "%i").strip())
    before = job.found()
    assert job.started.wait(LONGEST_S) == 0, job.logs()
    after = job.found()
    assert len(before) < len(after) == 36
    assert {record["status"] for record in after} == {"passed"}
    assert len([record for record in after if record in before]) >= 3
    names = {record["host"]: record["provenance"]["host"]["name"] for record in after}
    assert names == {0: "ob0", 1: "ob1", 2: "ob2"}
    assert "cluster: Slurm, host 0 of 3, head ob0:" in job.log.read_text()


@pytest.mark.extended
def test_a_host_that_is_killed_leaves_the_others_alone(cluster, tmp_path):
    job = Job(cluster, tmp_path, repeats=12)
    job.await_records(3)
    for one in cluster.lab.processes(1):
        if one.cmdline()[2:4] == ["orbax_bench_core.cli", "run"]:
            one.kill()
    assert job.started.wait(LONGEST_S) != 0, job.logs()
    assert "HostLost" in job.log.read_text()
    assert job.submit().wait(LONGEST_S) == 0, job.logs()
    assert len(job.found()) == 36
