"""`orbax-bench step run-sweep-point`: one point of a run that was planned."""

import json
from pathlib import Path

import pytest

from orbax_bench_core.engine import plan_sweep
from orbax_bench_core.records import RunDirectory
from tests.support.cluster import Hosts
from tests.support.processes import ROOT
from tests.support.scripted import NAME


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Plans a suite of two points; returns their ids, and the run directory."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(processes=1):
        suite = {
            "suite_name": "scripted",
            "num_repeats": 1,
            "execution": {"retries": 0, "warmups": 0},
            "benchmarks": [{"generator": NAME, "options": {"save_s": [0.02, 0.03]}}],
        }
        out = str(tmp_path / "out")
        plan_sweep(json.dumps(suite), out, processes=processes)
        return [entry.id for entry in RunDirectory(out).read_info().expansion.points], out

    return make


def recorded(out):
    return {(path.parts[-3], path.name) for path in Path(out).glob("records/*/*/host_*.json")}


def test_a_point_that_the_run_does_not_have_is_refused_with_those_it_has(begin, orbax_bench):
    ids, out = begin()
    done = orbax_bench("step", "run-sweep-point", "c0ffee", "-o", out)
    assert done.code == 2
    assert done.err == f"error: {out} has no point c0ffee; it has {ids[0]}, {ids[1]}\n"


def test_a_point_that_would_wait_for_the_other_hosts_of_a_slice_is_refused(
    begin, orbax_bench, monkeypatch
):
    (one, _), out = begin()
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setenv("TPU_WORKER_HOSTNAMES", "a,b,c,d")
    done = orbax_bench("step", "run-sweep-point", one, "-o", out)
    assert done.code == 2
    assert "a point with processes=1 on a TPU slice of 4 hosts" in done.err
    assert not recorded(out)


def test_points_of_a_suite_that_names_no_processes_get_those_of_the_plan(begin):
    _, out = begin(processes=3)
    points = RunDirectory(out).read_info().expansion.points
    assert {point.processes for point in points} == {3}


@pytest.mark.slow
def test_hosts_that_are_started_with_the_same_line_measure_the_point_and_no_other(begin, tmp_path):
    (one, _), out = begin(processes=2)
    (tmp_path / "said").mkdir()
    flags = ("-o", out, "--no-limits", "--no-lock")
    words = ("step", "run-sweep-point", one, *flags)
    with Hosts(tmp_path / "said", *words) as hosts:
        assert hosts.codes(hosts.start_all()) == [0, 0], hosts.said(0) + hosts.said(1)
        assert hosts.orphans() == []
    assert recorded(out) == {(one, "host_0.json"), (one, "host_1.json")}
    returned = [json.loads(hosts.said(rank).splitlines()[-1]) for rank in (0, 1)]
    assert returned == [["passed"]] * 2
    assert f"orbax-bench: cluster: JAX_*, host 1 of 2, head {hosts.address}" in hosts.said(1)
