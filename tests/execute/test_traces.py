"""Profiler traces and HLO dumps, of any benchmark, without the author doing anything."""

import collections

import pytest

pytestmark = pytest.mark.slow

SUITE = """
suite_name: traces
num_repeats: 2
execution: {{retries: 0, warmups: 1}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8, 4]}}}}}}
benchmarks:
  - generator: {generator}
    options: {options}
"""
BLOCKS = ("save", "save_blocking", "save_background", "load")
"""All of a save and a load, the two inside the save included."""


def traced(run):
    """Number of traces by operation."""
    traces = run.directory.glob("tensorboard/**/*.xplane.pb")
    folders = [trace.relative_to(run.directory / "tensorboard").parts[0] for trace in traces]
    return dict(collections.Counter(folder.partition("__")[2] for folder in folders))


def test_the_first_repeat_is_traced_per_operation(suite_run):
    run = suite_run(SUITE.format(generator="save_restore", options="{enable_trace: true}"))
    assert run.run()[0] == 0
    assert traced(run) == dict.fromkeys(BLOCKS, 1)


@pytest.mark.nightly
def test_every_repeat_is_traced_on_request(suite_run):
    options = "{enable_trace: true, trace_every_repeat: true}"
    run = suite_run(SUITE.format(generator="save_restore", options=options))
    assert run.run()[0] == 0
    assert traced(run) == dict.fromkeys(BLOCKS, 2)


@pytest.mark.nightly
def test_nothing_is_traced_by_default(suite_run):
    run = suite_run(SUITE.format(generator="save_restore", options="{}"))
    assert run.run()[0] == 0
    assert traced(run) == {}


@pytest.mark.nightly
def test_a_benchmark_that_knows_nothing_of_traces_is_traced(suite_run):
    options = "{act: behave, enable_trace: true}"
    run = suite_run(SUITE.format(generator="misbehaving.Misbehaving", options=options))
    assert run.run()[0] == 0
    assert traced(run) == {"before": 1, "mishap": 1}


def test_a_benchmark_takes_the_trace_of_one_block_and_not_of_later_ones(suite_run):
    options = "{act: claim, enable_trace: true}"
    run = suite_run(SUITE.format(generator="misbehaving.Misbehaving", options=options))
    assert run.run()[0] == 0
    assert traced(run) == {"before": 1, "mishap": 1}


@pytest.mark.nightly
def test_a_trace_of_a_block_that_raises_does_not_spoil_the_next(suite_run):
    options = "{act: [raise, behave], enable_trace: true}"
    run = suite_run(SUITE.format(generator="misbehaving.Misbehaving", options=options))
    assert run.run()[0] == 1
    records = run.records()
    assert records["raise/repeat_0"]["error"]["message"] == "raised on purpose"
    assert records["behave/repeat_0"]["status"] == "passed"


@pytest.mark.nightly
def test_defect_28_hlo_protos_are_written(suite_run):
    run = suite_run(SUITE.format(generator="save_restore", options="{}"))
    assert run.run("--enable-hlo-dump")[0] == 0
    assert list(run.directory.glob("hlo_dump/*.hlo.pb"))
