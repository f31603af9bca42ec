"""What a command does in a cluster before anything is measured."""

import json

import pytest

from orbax_bench_core.cli.hosts import load_for_hosts, place_in_cluster
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Cluster, RunSettings, on_hosts
from orbax_bench_core.records import RunDirectory

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


def measured(suite, cluster=None):
    """Returns what comes of a suite that would be measured at once."""
    loaded = load_for_hosts(suite, [], cluster)
    return on_hosts(
        cluster,
        RunDirectory("out"),
        lambda settings: 7,
        suite=loaded,
        equal={},
        settings=RunSettings(),
        say=print,
    )


@pytest.mark.parametrize("more", [{}, {"arms": {"candidate": {"processes": 3}}}])
def test_a_point_that_leaves_hosts_of_a_slice_out_is_refused_with_the_numbers(
    suite, monkeypatch, more
):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    processes = 4 if more else 1
    path = suite(execution={"processes": processes}, **more)
    assert measured(path) == 7
    monkeypatch.setenv("TPU_WORKER_HOSTNAMES", "a,b,c,d")
    count = 3 if more else 1
    with pytest.raises(UserError) as caught:
        measured(path)
    assert (
        f"a point with processes={count} on a TPU slice of 4 hosts: libtpu waits for all of them, "
        "so a point needs 4 processes" in str(caught.value)
    )
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert measured(path) == 7


def test_a_point_of_several_processes_is_refused_on_pathways(suite, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "proxy")
    with pytest.raises(UserError, match="a point needs 1 process, and some have 2"):
        measured(suite(execution={"processes": [1, 2]}))
    with pytest.raises(UserError, match="JAX_BACKEND_TARGET is not set"):
        measured(suite())
