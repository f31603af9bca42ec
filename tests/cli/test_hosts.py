"""What a command does in a cluster before it measures, and which commands look at their place."""

import pytest
import typer.main

import orbax_bench_core
from orbax_bench_core import execute
from orbax_bench_core.cli.hosts import load_for_hosts, place_in_cluster
from orbax_bench_core.cli.main import app
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Cluster, RunSettings, on_hosts
from orbax_bench_core.records import RunDirectory
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401
from tests.support.scripted import NAME

THREE = Cluster(found="JAX_*", rank=0, size=3, head="10.0.0.1", port=1)


def test_a_suite_that_says_nothing_of_processes_runs_on_all_hosts_together(write_suite):
    suite = str(write_suite())
    assert load_for_hosts(suite, [], THREE).suite.execution.processes == (3,)
    assert load_for_hosts(suite, [], None).suite.execution.processes == (1,)


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
    loaded = load_for_hosts(str(suite), [], cluster)
    return on_hosts(
        cluster,
        RunDirectory("out"),
        lambda settings: 7,
        suite=loaded,
        settings=RunSettings(),
        say=print,
    )


@pytest.mark.parametrize("more", ["", "arms: {candidate: {processes: 3}}\n"])
def test_a_point_that_leaves_hosts_of_a_slice_out_is_refused_with_the_numbers(
    write_suite, monkeypatch, more
):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    processes = 4 if more else 1
    path = write_suite(extra=f"execution: {{processes: {processes}}}\n{more}")
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


def test_a_point_of_several_processes_is_refused_on_pathways(write_suite, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "proxy")
    with pytest.raises(UserError, match="a point needs 1 process, and some have 2"):
        measured(write_suite(extra="execution: {processes: [1, 2]}\n"))
    with pytest.raises(UserError, match="JAX_BACKEND_TARGET is not set"):
        measured(write_suite())


ALL_HOSTS = ["ab", "async-study", "bisect", "calibrate", "recovery", "run", "soak", "upgrade"]


@pytest.fixture
def on_three_hosts(monkeypatch):
    """Sets what a launcher sets on host 1 of 3, whose process 0 never answers."""
    place = {"COORDINATOR_ADDRESS": "192.0.2.1:9", "NUM_PROCESSES": "3", "PROCESS_ID": "1"}
    for name, value in place.items():
        monkeypatch.setenv(f"JAX_{name}", value)
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("SLURM_NTASKS", "3")
    monkeypatch.setenv("SLURM_STEP_NODELIST", "node[1-3]")


def test_what_measures_on_all_hosts_and_nothing_else_has_the_flags_of_a_cluster():
    group = typer.main.get_command(app)
    for name in group.list_commands(None):
        flags = {parameter.name for parameter in group.get_command(None, name).params}
        measures = name in ALL_HOSTS
        assert ({"no_cluster", "host_wait"} <= flags) is measures, name
        assert bool({"no_cluster", "host_wait"} & flags) is measures, name


@pytest.fixture
def reading(write_suite, make_sizes, tmp_path):
    """Returns commands that read, with what they are given."""
    run = make_sizes().root
    return {
        "async-study": (run,),
        "baseline": ("list", tmp_path),
        "calibrate": (run,),
        "compare": (run, run),
        "expand": (write_suite(),),
        "history": (run,),
        "lineage": (run / "summary.csv",),
        "list": (),
        "report": (run,),
        "sharding": (tmp_path / "none",),
    }


@pytest.mark.slow
def test_what_reads_takes_no_notice(reading, request, orbax_bench, monkeypatch):
    orbax_bench("report", *reading["report"])  # from here on every report says the same
    alone = {name: orbax_bench(name, *given) for name, given in reading.items()}
    request.getfixturevalue("on_three_hosts")

    def never(environment):
        raise AssertionError("a command that reads looks at its place")

    monkeypatch.setattr(execute, "detect_cluster", never)
    for name, given in reading.items():
        assert orbax_bench(name, *given) == alone[name], name


def test_what_measures_and_knows_nothing_of_clusters_is_refused(on_three_hosts, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(f"suite_name: s\nbenchmarks: [{{generator: {NAME}, options: {{}}}}]\n")
    with pytest.raises(UserError) as caught:
        orbax_bench_core.run(str(suite), str(tmp_path / "out"), limits=False)
    problem = str(caught.value)
    assert problem.startswith("JAX_* says that this is host 1 of 3, and what was started here")
    assert "`orbax-bench run`, `ab`" in problem
    assert "ORBAX_BENCH_CLUSTER=none" in problem
    assert not list((tmp_path / "out").glob("records/*"))


def test_a_night_is_one_of_one_host(on_three_hosts, orbax_bench, write_suite, tmp_path):
    done = orbax_bench("night", write_suite(), "--below", tmp_path / "nights")
    assert done.code == 2
    assert "and `orbax-bench night` measures on one host" in done.err
    assert not (tmp_path / "nights").exists()
