"""Mistakes of a benchmark's author, from the command line to the report."""

import json
import os

import pytest

from tests.support.processes import start_cli

pytestmark = pytest.mark.slow

MODULE = """\
import dataclasses
from orbax_bench_core.authoring import (
    BenchmarkOptions, BenchmarksGenerator, TestResult, benchmark_options
)
from orbax_bench_core.measure import Metrics

@benchmark_options(BenchmarkOptions)
class Bench(BenchmarksGenerator):
    def test_fn(self, context):
        metrics = Metrics()
        {body}
        return {returned}
"""
SUITE = """\
suite_name: mine
execution: {{retries: 0, warmups: {warmups}}}
benchmarks: [{{generator: my_bench.Bench, options: {options}}}]
"""


@pytest.fixture
def run(tmp_path):
    """Runs a benchmark with the given body; returns exit code, output, record and folder."""

    def command(body="pass", *, returned="TestResult(metrics=metrics)", warmups=0, options="{}"):
        (tmp_path / "my_bench.py").write_text(MODULE.format(body=body, returned=returned))
        suite = tmp_path / "suite.yaml"
        suite.write_text(SUITE.format(warmups=warmups, options=options))
        out = tmp_path / "out"
        process = start_cli(
            *("run", suite, "-o", out, "--no-lock", "--no-limits"),
            environment={**os.environ, "COLUMNS": "300"},
        )
        output, _ = process.communicate(timeout=120)
        (path,) = out.glob("records/*/repeat_0/host_0.json")
        return process.returncode, output, json.loads(path.read_text()), out

    return command


def test_a_class_without_a_measured_block_is_an_error_that_names_it(run):
    code, output, record, _ = run()
    assert code == 1
    assert record["status"] == "failed"
    assert "my_bench.Bench.test_fn measured nothing" in output
    assert 'with metrics.measure("save"):' in output
    assert "✓" not in output


def test_a_result_that_is_none_names_the_class_that_returned_it(run):
    body = 'with metrics.measure("save"): pass'
    code, output, record, _ = run(body, returned="None")
    assert code == 1
    assert record["error"]["message"].startswith("my_bench.Bench.test_fn returned None; ")
    assert "ABCMeta" not in output


@pytest.mark.parametrize("warmups", [0, 1])
def test_an_exception_says_where_on_the_console_in_the_report_and_in_the_record(run, warmups):
    code, output, record, out = run('raise ValueError("kaboom")', warmups=warmups)
    place, said = "my_bench.py:11", "in a warm-up: kaboom" if warmups else "kaboom"
    assert code == 1
    assert f"failed: ValueError: {said} ({place})" in output
    assert "Traceback" not in output
    assert 'raise ValueError("kaboom")' in record["error"]["traceback"]
    assert "worker/repeat.py" in record["error"]["traceback"]
    markdown, html = (out / "report.md").read_text(), (out / "report.html").read_text()
    for page in (markdown, html):
        assert f"ValueError: {said} ({place})" in page
        assert "<details" in page
        assert "Traceback (most recent call last)" in page
        assert "worker/repeat.py" not in page


def test_an_unknown_metric_key_is_an_error_that_lists_the_keys(run):
    code, output, _, _ = run('metrics.measure("save", ["time", "nope"]).__enter__()')
    assert code == 1
    assert "unknown metric key 'nope'" in output
    assert "jax_monitoring, device_memory, tensorstore" in output


def test_each_process_logs_its_report_at_the_end_of_a_repeat(run):
    code, output, _, out = run('with metrics.measure("save"): pass')
    assert code == 0, output
    (log,) = out.glob("logs/*.log")
    text = log.read_text()
    assert "metric report of process 0 of 1: Bench[] repeat 0: passed" in text
    assert "  save_0_basics/time_s " in text


def test_nested_blocks_are_traced_each(run):
    body = 'with metrics.measure("outer"), metrics.measure("inner"): pass'
    code, output, _, out = run(body, options="{enable_trace: true}")
    assert code == 0, output
    traces = out.glob("tensorboard/*/plugins/profile/*/*.xplane.pb")
    names = sorted(path.relative_to(out / "tensorboard").parts[0] for path in traces)
    assert [name.partition("__")[2] for name in names] == ["inner", "outer"]
