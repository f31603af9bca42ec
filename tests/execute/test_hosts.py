"""The same command on several hosts, which here are processes on this machine with fake workers."""

import json
import os
import signal
import sys

import psutil
import pytest

from tests.support.cluster import Hosts

pytestmark = pytest.mark.slow

SUITE = """
suite_name: hosts
num_repeats: {repeats}
execution: {{retries: 1, warmups: 0, timeout_s: 60}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8]}}}}}}
benchmarks:
  - {{generator: tests.support.scripted.Scripted, options: {{{options}}}}}
"""


@pytest.fixture
def cluster(tmp_path):
    """Makes a cluster whose hosts run a suite with one scripted point."""
    made = []

    def make(
        options="act: behave", repeats=2, size=2, command="run", flags=("--no-limits",), suite=SUITE
    ):
        path = tmp_path / "suite.yaml"
        path.write_text(suite.format(options=options, repeats=repeats))
        words = (command, path, "-o", tmp_path / "out", "--no-lock", "--host-wait", "5", *flags)
        made.append(Hosts(tmp_path, *words, size=size))
        return made[-1]

    yield make
    for hosts in made:
        hosts.__exit__()


def records(folder, repeat=0):
    """Returns the records of one repeat by host."""
    paths = (folder / "out").glob(f"records/*/repeat_{repeat}/host_*.json")
    found = [json.loads(path.read_text()) for path in paths]
    return {record["host"]: record for record in found}


def begun(folder, repeat=0):
    """Returns whether every worker has saved in a repeat that now lasts."""
    return len(list((folder / "out").glob(f"**/repeat_{repeat}/saved_by_*"))) == 2


def test_every_host_runs_its_worker_and_ends_as_process_0_does(cluster, tmp_path):
    hosts = cluster(size=3)
    started = hosts.start_all()
    assert hosts.codes(started) == [0, 0, 0], hosts.said(0) + hosts.said(1)
    for repeat in range(2):
        found = records(tmp_path, repeat)
        assert sorted(found) == [0, 1, 2]
        assert {record["status"] for record in found.values()} == {"passed"}
        assert {record["num_hosts"] for record in found.values()} == {3}
    assert f"cluster: JAX_*, host 2 of 3, head {hosts.address}" in hosts.said(2)
    assert "host 1 (" in hosts.said(0)
    assert "has joined from 127.0.0.1" in hosts.said(0)
    assert not (tmp_path / "out" / "cluster").exists()  # the token goes with the run
    assert hosts.orphans() == []


@pytest.mark.nightly
def test_a_comparison_runs_on_all_hosts_and_its_verdict_is_the_exit_code_of_each(cluster, tmp_path):
    hosts = cluster(command="ab", flags=("--candidate", "save_s=0.04"))
    assert hosts.codes(hosts.start_all()) == [3, 3], hosts.said(0) + hosts.said(1)
    found = [json.loads(path.read_text()) for path in (tmp_path / "out").rglob("host_1.json")]
    assert {record["arm"] for record in found} == {"baseline", "candidate"}


@pytest.fixture
def pythons(tmp_path):
    """Puts a Python of one name, each in a folder of its own, on the PATH of some hosts."""

    def put(*ranks):
        variables = {}
        for rank in ranks:
            python = tmp_path / f"bin_{rank}" / "mypython"
            python.parent.mkdir()
            python.write_text(
                f'#!/bin/sh\necho $$ >> "{tmp_path}/used_{rank}"\nexec "{sys.executable}" "$@"\n'
            )
            python.chmod(0o755)
            variables[rank] = {"PATH": f"{python.parent}:{os.environ['PATH']}"}
        return variables

    return put


ENVIRONMENTS = "environments: [{{name: mine, interpreter: mypython}}]\n"


@pytest.mark.nightly
def test_environments_are_made_by_each_host_and_asked_for_by_name(cluster, tmp_path, pythons):
    flags = ("--candidate", "environment=mine", "--allow-inconclusive")
    hosts = cluster(command="ab", flags=flags, suite=SUITE + ENVIRONMENTS)
    found = pythons(0, 1)
    started = [hosts.start(rank, **found[rank]) for rank in (0, 1)]
    # Each of some forty lives is a process on each host.
    assert hosts.codes(started, within_s=400) == [0, 0], hosts.said(0) + hosts.said(1)
    records = [json.loads(path.read_text()) for path in (tmp_path / "out").rglob("host_1.json")]
    assert {record["status"] for record in records} == {"passed"}
    assert len(records) >= 8
    for rank in (0, 1):
        checks_and_workers = (tmp_path / f"used_{rank}").read_text().split()
        assert len(checks_and_workers) > 1


@pytest.mark.nightly
def test_an_environment_that_one_host_cannot_make_is_one_message_with_its_name(
    cluster, tmp_path, pythons
):
    hosts = cluster(
        command="ab", flags=("--candidate", "environment=mine"), suite=SUITE + ENVIRONMENTS
    )
    found = {**pythons(0), 1: {}}
    started = [hosts.start(rank, **found[rank]) for rank in (0, 1)]
    assert hosts.codes(started) == [1, 1], hosts.said(0)
    assert "mine: on host 1 (" in hosts.said(0)
    assert "there is no program 'mypython' on PATH" in hosts.said(0)


def test_what_makes_an_environment_elsewhere_ends_with_process_0(cluster, tmp_path, pythons):
    flags = ("--candidate", "environment=mine")
    hosts = cluster(command="ab", flags=flags, suite=SUITE + ENVIRONMENTS)
    found = pythons(0, 1)
    slow = tmp_path / "bin_1" / "mypython"
    slow.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/maker"\nexec sleep 600\n')
    head, agent = (hosts.start(rank, **found[rank]) for rank in (0, 1))
    hosts.wait_for(lambda: (tmp_path / "maker").exists() and (tmp_path / "maker").read_text())
    head.kill()
    head.wait()
    assert agent.wait(timeout=60) == 75
    assert not psutil.pid_exists(int((tmp_path / "maker").read_text()))


def test_a_worker_that_is_killed_elsewhere_is_named_and_the_repeat_is_tried_again(
    cluster, tmp_path
):
    hosts = cluster("act: die, on_host: 1, only_once: true")
    assert hosts.codes(hosts.start_all()) == [0, 0], hosts.said(0)
    tries = [records(tmp_path)[host]["attempts"] for host in (0, 1)]
    assert [[one["error"]["type"] for one in attempts] for attempts in tries] == [
        ["PeerFailed"],
        ["WorkerDied"],
    ]
    assert "killed by SIGKILL" in tries[1][0]["error"]["message"]


@pytest.mark.nightly
def test_a_host_that_stays_away_ends_the_run_as_incomplete_and_the_same_commands_resume(
    cluster, tmp_path
):
    hosts = cluster("lasts_s: 1", repeats=3)
    head, agent = hosts.start_all()
    hosts.wait_for(lambda: begun(tmp_path, 1))
    agent.kill()
    assert hosts.codes([head]) == [1], hosts.said(0)
    assert "host 1 (" in hosts.said(0)
    assert "did not come back within 5 s" in hosts.said(0)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "incomplete"
    assert records(tmp_path, 1)[1]["error"]["type"] == "HostLost"
    before = {host: record["started_at"] for host, record in records(tmp_path, 0).items()}
    assert hosts.codes(hosts.start_all()) == [0, 0], hosts.said(0)
    assert {host: one["started_at"] for host, one in records(tmp_path, 0).items()} == before
    assert {one["status"] for one in records(tmp_path, 2).values()} == {"passed"}
    assert hosts.orphans() == []


@pytest.mark.nightly
def test_where_process_0_is_killed_agents_and_workers_end_and_the_same_commands_resume(
    cluster, tmp_path
):
    hosts = cluster("lasts_s: 4", repeats=1)
    head, agent = hosts.start_all()
    hosts.wait_for(lambda: begun(tmp_path))
    assert len(hosts.workers(head)) == len(hosts.workers(agent)) == 1
    head.kill()
    assert agent.wait(timeout=60) == 75
    assert hosts.orphans() == []
    assert "no contact with process 0" in hosts.said(1)
    assert records(tmp_path) == {}
    # An agent that is there first finds the token of the run that was killed.
    again = [hosts.start(1), hosts.start(0)]
    assert hosts.codes(again) == [0, 0], hosts.said(0) + hosts.said(1)
    assert [records(tmp_path)[host]["status"] for host in (0, 1)] == ["passed", "passed"]


def test_missing_hosts_are_named_while_process_0_waits(cluster):
    hosts = cluster(size=3)
    head = hosts.start(0)
    hosts.wait_until_said(0, f"waiting for hosts 1, 2 of 3 to join at {hosts.address}")
    assert head.poll() is None


@pytest.mark.parametrize(
    "notice", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.nightly)]
)
def test_process_0_that_is_told_to_end_while_it_waits_leaves_no_token(cluster, tmp_path, notice):
    hosts = cluster(size=3)
    head, agent = hosts.start(0), hosts.start(1)
    hosts.wait_until_said(1, "joined process 0")
    head.send_signal(notice)
    assert hosts.codes([head, agent]) == [130, 130], hosts.said(0)
    assert "Traceback" not in hosts.said(0)
    assert not (tmp_path / "out" / "cluster").exists()
