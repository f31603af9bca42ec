"""Profiler traces and HLO dumps, of any benchmark, without the author doing anything."""

import collections
import json

import pytest

from tests.support.processes import ROOT

from .test_lives import Compared, suite_of

pytestmark = pytest.mark.slow

SUITE = """
suite_name: traces
num_repeats: 2
execution: {retries: 0, warmups: 1}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8, 4]}}}
benchmarks:
- {generator: save_restore, options: {enable_trace: true}}
"""
TRACED = "- {generator: safetensors_load, options: {enable_xprof: true}}\n"

REPORTS = ("report.md", "report.html")


def warm_ups(directory):
    """Arm of each warm-up, and whether it was traced, in their order."""
    files = directory.glob("records/*/warmup_*/host_0.json")
    found = [json.loads(file.read_text()) for file in files]
    return [
        (each["arm"] or "", each["traced"]) for each in sorted(found, key=lambda r: r["repeat"])
    ]


def traced(run):
    """Number of traces by operation."""
    traces = run.directory.glob("tensorboard/**/*.xplane.pb")
    folders = [trace.relative_to(run.directory / "tensorboard").parts[0] for trace in traces]
    return dict(collections.Counter(folder.partition("__")[2] for folder in folders))


def test_a_warm_up_is_traced_per_operation_and_no_repeat_that_counts(suite_run):
    run = suite_run(SUITE + TRACED)
    code, output = run.run()
    assert code == 0
    assert traced(run) == {"save": 1, "save_blocking": 1, "save_background": 1, "load": 2}
    assert sorted(warm_ups(run.directory)) == [("", False)] * 2 + [("", True)] * 2
    assert not any(record["traced"] for record in run.records().values())
    said = "Traced: 2 warm-ups, in no figure"
    assert said in " ".join(output.split())
    assert all(said in run.directory.joinpath(name).read_text() for name in REPORTS)


@pytest.mark.parametrize(("every", "traces"), [(False, 1), (True, 3)])
def test_what_is_measured_is_never_traced(orchestrate, every, traces):
    run = orchestrate("behave", enable_trace=True, trace_every_repeat=every)
    run.run(repeats=2, warmups=1)
    run.run(repeats=3, warmups=1)  # goes on in a new worker
    assert sum(traced for _, traced in warm_ups(run.directory)) == traces
    assert not any(run.record("behave", repeat).traced for repeat in range(3))


@pytest.mark.parametrize("lives", ["always", "auto"])
def test_a_comparison_traces_each_arm_and_no_operation_of_a_block(tmp_path, monkeypatch, lives):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    traced = {"enable_trace": True}
    compared = Compared(tmp_path, suite_of(options=traced, gate={"lives": lives})).run(4)
    made = collections.Counter(warm_ups(tmp_path / "out"))
    assert (made["baseline", True], made["candidate", True]) == (1, 1)
    assert compared.times.attempts["candidate"].count == 4
    assert not any(repeat.traced for repeat in compared.repeats.values())


@pytest.mark.nightly
def test_defect_28_hlo_protos_are_written(suite_run):
    run = suite_run(SUITE.replace("enable_trace: true", ""))
    assert run.run("--enable-hlo-dump")[0] == 0
    assert list(run.directory.glob("hlo_dump/*.hlo.pb"))
