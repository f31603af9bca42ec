"""Several host processes joined by JAX: what each measures, and what one failure does to all."""

import functools

import pytest

from orbax_bench_core.execute.liveness import Patience
from tests.execute.conftest import SuiteRun
from tests.golden.support import said

pytestmark = pytest.mark.slow

SUITE = """
suite_name: processes
num_repeats: 6
execution: {{processes: {processes}, timeout_s: 60, rounds_per_process: 6}}
checkpoint_config:
  spec:
    sharded: {{dtype: bfloat16, shape: [256, 128], sharding: [x]}}
    replicated: {{dtype: float32, shape: [64]}}
    step: int
mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: {devices}}}}}
benchmarks:
  - {{generator: save_restore, options: {{}}}}
  - {{generator: late_host.LateHost, options: {{late_host: [null, 1]}}}}
"""

MISHAP = """
suite_name: mishap
execution: {processes: 2, timeout_s: 60, retries: 0, warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8, 4]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks:
  - {generator: misbehaving.Misbehaving, options: {act: kill, on_host: 1}}
  - {generator: misbehaving.Misbehaving, options: {act: behave}}
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Returns the run of a number of processes, which is made once."""

    @functools.cache
    def make(processes):
        suite = SUITE.format(processes=processes, devices=2 * processes)
        run = SuiteRun(tmp_path_factory.mktemp("run"), suite)
        code, output = run.run()
        assert code == 0, output
        return run

    return make


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_every_host_leaves_a_record_and_verifies_its_shards(measured, processes):
    found = measured(processes).host_files("host_*").values()
    counts = {(one["num_hosts"], one["provenance"]["devices"]["count"]) for one in found}
    assert counts == {(processes, 2 * processes)}
    saved = [one for one in found if one["point"]["benchmark"] == "save_restore"]
    assert sorted(one["host"] for one in saved) == sorted([*range(processes)] * 6)
    assert {one["state"]["verified"] for one in saved} == {"saved"}
    assert all({s["operation"] for s in one["samples"]} >= {"save", "load"} for one in saved)


def test_a_report_names_a_late_host_and_none_of_two_equal_ones(measured):
    """Orbax's time of a host's writes has its waits for the primary host, which all others have."""
    shown = said("report", measured(2).directory, "--details")
    # A busy machine can really hold up one of two equal processes, but not at its writes.
    by_writes = "of it in 2_save_breakdown/worker_io_s"
    named = [line for line in shown.splitlines() if by_writes in line and "late_" in line]
    assert len(named) == 1, named
    assert "late_host=1" in named[0]
    assert "save: host 1 was slowest in 6 of 6 repeats" in named[0]
    assert f"100 % {by_writes}" in named[0]


@pytest.mark.nightly
@pytest.mark.parametrize("frozen", [pytest.param(0, marks=pytest.mark.extended), 1])
def test_a_worker_that_is_frozen_is_named_before_jax_ends_its_peer(suite_run, frozen):
    text = MISHAP.replace("act: kill, on_host: 1", f"act: freeze, on_host: {frozen}")
    run = suite_run(text)
    code, output = run.run()
    assert code == 1
    errors = {host: record["error"] for host, record in run.host_records(0, act="freeze").items()}
    assert (errors[frozen]["type"], errors[1 - frozen]["type"]) == ("Frozen", "PeerFailed"), output
    assert "stopped (state T)" in errors[frozen]["message"]
    assert f"host {frozen} failed" in errors[1 - frozen]["message"]
    assert "do_signal_stop" in errors[frozen]["traceback"]  # where it stands, read from outside
    assert "Frozen" in output
    healthy = run.host_records(0, act="behave")
    assert {record["status"] for record in healthy.values()} == {"passed"}


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        ("raise", "ValueError"),
        ("die", "WorkerDied"),
        pytest.param("hang", "Timeout", marks=pytest.mark.nightly),
    ],
)
def test_defects_26_and_31_one_host_ends_the_repeat_for_all_and_the_next_point_is_healthy(
    orchestrate, act, kind
):
    run = orchestrate(act, "behave", processes=2, devices=2, on_host=1)
    run.run(timeout_s=5 if act == "hang" else 120, patience=Patience(settle_s=0.5))
    errors = {host: record.error for host, record in run.repeat(act).items()}
    # A host that waits for a hanging one is as late as that one, and no sign tells them apart.
    assert errors[0].type == ("Timeout" if act == "hang" else "PeerFailed")
    assert errors[1].type == kind
    healthy = run.repeat("behave")
    assert [healthy[host].status for host in (0, 1)] == ["passed", "passed"]


def test_a_host_that_lags_behind_is_waited_for(orchestrate):
    run = orchestrate("lag", processes=2, devices=2, on_host=1, lasts_s=0.5)
    run.run()
    records = run.repeat("lag")
    assert [records[host].status for host in (0, 1)] == ["passed", "passed"]
    assert min(record.duration_s for record in records.values()) >= 0.5


def test_an_unmet_need_of_all_hosts_keeps_their_workers(orchestrate):
    run = orchestrate("need", "behave", processes=2, devices=2)
    run.run(repeats=3, retries=2, rounds_per_process=3)
    errors = [record.error for record in run.repeat("need").values()]
    assert [error.type for error in errors] == ["UnmetNeed"] * 2
    assert len(run.processes("behave", 3)) == 2
