"""What a command does in a cluster before anything is measured."""

import json

import pytest

from orbax_bench_core.cli.hosts import load_for_hosts, place_in_cluster
from orbax_bench_core.execute import Cluster

THREE = Cluster(found="JAX_*", rank=0, size=3, head="10.0.0.1", port=1)
SUITE = {"suite_name": "s", "benchmarks": [{"generator": "save_restore", "options": {}}]}


@pytest.fixture
def suite(tmp_path):
    """Writes a suite with some keys more, and returns its path."""

    def write(**more):
        path = tmp_path / "suite.yaml"
        path.write_text(json.dumps({**SUITE, **more}))
        return str(path)

    return write


def test_a_suite_that_says_nothing_of_processes_runs_on_all_hosts_together(suite):
    assert load_for_hosts(suite(), [], THREE).suite.execution.processes == (3,)
    assert load_for_hosts(suite(), [], None).suite.execution.processes == (1,)


def test_a_suite_keeps_the_processes_that_it_names(suite):
    path = suite(execution={"processes": [1, 2]})
    assert load_for_hosts(path, [], THREE).suite.execution.processes == (1, 2)
    assert load_for_hosts(path, ["execution.processes=4"], THREE).suite.execution.processes == (4,)


def test_the_place_is_said_in_one_line_unless_it_is_switched_off(monkeypatch, capsys):
    for name, value in [("ADDRESS", "10.0.0.1:1"), ("PORT", "7")]:
        monkeypatch.setenv(f"JAX_COORDINATOR_{name}", value)
    monkeypatch.setenv("JAX_NUM_PROCESSES", "3")
    monkeypatch.setenv("JAX_PROCESS_ID", "2")
    assert place_in_cluster(no_cluster=True) is None
    assert capsys.readouterr().err == ""
    assert place_in_cluster(no_cluster=False).rank == 2
    assert capsys.readouterr().err == "cluster: JAX_*, host 2 of 3, head 10.0.0.1:7\n"
