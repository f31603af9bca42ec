"""Steps that measure, where a launcher has started them on every host."""

import json

import pytest

from orbax_bench_core.engine import plan_sweep
from orbax_bench_core.engine.planning import ensure_checkpoint
from orbax_bench_core.errors import UserError
from tests.support.cluster import Hosts
from tests.support.processes import ROOT
from tests.support.scripted import NAME

FIXTURE = """
suite_name: fixture
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Plans a suite of two points on two hosts, and returns them with their folder."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(**options):
        suite = {
            "suite_name": "scripted",
            "num_repeats": 2,
            "execution": {"retries": 0, "warmups": 0, "processes": 2},
            "benchmarks": [{"generator": NAME, "options": {"save_s": [0.02, 0.03], **options}}],
        }
        out = str(tmp_path / "out")
        return plan_sweep(json.dumps(suite), out, points_per_step=1).value, out

    return make


def step(folder, *words):
    folder.mkdir()
    return Hosts(folder, *words, cli="tests.support.fake_step")


@pytest.mark.nightly
@pytest.mark.slow
def test_steps_of_one_run_meet_apart_from_each_other(begin, tmp_path):
    (one, other), out = begin(lasts_s=2.0)
    with step(tmp_path / "one", one, out) as first, step(tmp_path / "other", other, out) as second:
        started = [*first.start_all(), *second.start_all()]
        codes = [process.wait(timeout=90) for process in started]
        assert codes == [0] * 4, "".join(hosts.said(r) for hosts in (first, second) for r in (0, 1))


@pytest.mark.nightly
@pytest.mark.slow
def test_hosts_that_were_given_different_points_do_not_meet(begin, tmp_path):
    (one, other), out = begin()
    token = {"ORBAX_BENCH_TOKEN": "t" * 32}
    with step(tmp_path / "one", one, out) as first, step(tmp_path / "other", other, out) as second:
        second.address = first.address
        first.start(0, **token)
        lost = second.start(1, **token)
        assert lost.wait(timeout=60) != 0
        assert "has the point " in second.said(1)


def test_a_checkpoint_is_not_made_on_several_hosts_at_once(tmp_path, monkeypatch):
    place = {"COORDINATOR_ADDRESS": "192.0.2.1:9", "NUM_PROCESSES": "2", "PROCESS_ID": "1"}
    for name, value in place.items():
        monkeypatch.setenv(f"JAX_{name}", value)
    path = tmp_path / "made"
    suite = FIXTURE.replace("spec: {w: {dtype: float32, shape: [8]}}", f"path: {path}")
    with pytest.raises(UserError, match=f"host 1 of 2, and making {path} measures on one host"):
        ensure_checkpoint(suite, FIXTURE)
