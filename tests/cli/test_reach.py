"""Every command where a launcher has started it on several hosts."""

import pytest
import typer.main

import orbax_bench_core
from orbax_bench_core import execute
from orbax_bench_core.cli.main import app
from orbax_bench_core.errors import UserError
from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401
from tests.support.scripted import NAME

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
