"""Mistakes of a benchmark's author, from the command line to the report."""

import dataclasses
import json
from pathlib import Path

import pytest

from tests.golden.support import orbax_bench

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
MEASURED = 'with metrics.measure("save"): pass'
RESULT = "TestResult(metrics=metrics)"


@dataclasses.dataclass
class Ended:
    """How a run ended."""

    code: int
    output: str
    folder: Path

    def record(self, module):
        """The record of the benchmark of a module."""
        paths = self.folder.glob("records/*/repeat_0/host_0.json")
        records = [json.loads(path.read_text()) for path in paths]
        [found] = [one for one in records if one["point"]["benchmark"] == f"{module}.Bench"]
        return found


def run(folder, bodies, *, execution="retries: 0, warmups: 0", options="{}", more=""):
    """Runs a benchmark of each body, in a module of its name; `(body, result)` returns another."""
    generators = []
    for module, body in bodies.items():
        given = (body, RESULT) if isinstance(body, str) else body
        (folder / f"{module}.py").write_text(MODULE.format(body=given[0], returned=given[1]))
        generators.append(f"- {{generator: {module}.Bench, options: {options}}}\n")
    suite = folder / "suite.yaml"
    suite.write_text(
        f"suite_name: mine\nexecution: {{{execution}}}\n{more}benchmarks:\n{''.join(generators)}"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "300")
        done = orbax_bench("run", suite, "-o", folder / "out", "--no-lock", "--no-limits")
    return Ended(done.code, done.out + done.err, folder / "out")


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    """The run of a suite in which every author made a mistake."""
    bodies = {
        "measures_nothing": "pass",
        "returns_none": (MEASURED, "None"),
        "raises": 'raise ValueError("kaboom")',
        "mute": 'raise type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})()',
        "half": 'raise type("Half", (Exception,), {})("a half \\ud800")',
        "half_name": 'with metrics.measure("\\ud800"): pass',
        "half_note": f'metrics.notes["a"] = ["\\ud800"]\n        {MEASURED}',
        "long": 'raise ValueError("x" * 5_000_000)',
        "unknown_key": 'metrics.measure("save", ["time", "nope"]).__enter__()',
    }
    return run(tmp_path_factory.mktemp("mistaken"), bodies)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The run of a traced benchmark with a block in a block, which is no mistake."""
    body = 'with metrics.measure("outer"), metrics.measure("inner"): pass'
    return run(tmp_path_factory.mktemp("sound"), {"nested": body}, options="{enable_trace: true}")


def test_a_class_without_a_measured_block_is_an_error_that_names_it(mistaken):
    assert mistaken.code == 1
    assert mistaken.record("measures_nothing")["status"] == "failed"
    assert "measures_nothing.Bench.test_fn measured nothing" in mistaken.output
    assert 'with metrics.measure("save"):' in mistaken.output
    assert "✓" not in mistaken.output


def test_a_result_that_is_none_names_the_class_that_returned_it(mistaken):
    error = mistaken.record("returns_none")["error"]
    assert error["message"].startswith("returns_none.Bench.test_fn returned None; ")
    assert "ABCMeta" not in mistaken.output


def test_an_exception_says_where_on_the_console_in_the_report_and_in_the_record(mistaken):
    check_exception(mistaken, "kaboom")


@pytest.mark.parametrize(
    ("module", "kind", "said"),
    [
        ("mute", "Mute", "its text cannot be told: __str__ raised ZeroDivisionError"),
        ("half", "Half", "a half \\ud800"),
        ("half_name", "Unrecordable", "notes are not kept: they cannot be written"),
        ("half_note", "Unrecordable", "notes are not kept: they cannot be written"),
        ("long", "ValueError", "... (5,000,000 characters) ..."),
    ],
)
def test_an_exception_that_no_file_can_hold_is_kept_as_far_as_one_can(mistaken, module, kind, said):
    error = mistaken.record(module)["error"]
    assert error["type"] == kind
    assert said in error["message"]
    assert "WorkerDied" not in mistaken.output


def check_exception(ended, said):
    place, traceback = "raises.py:11", ended.record("raises")["error"]["traceback"]
    assert f"failed: ValueError: {said} ({place})" in ended.output
    assert "Traceback" not in ended.output
    assert 'raise ValueError("kaboom")' in traceback
    assert "worker/repeat.py" in traceback
    for name in ("report.md", "report.html"):
        page = (ended.folder / name).read_text()
        assert f"ValueError: {said} ({place})" in page
        folded = [part.partition("</details>")[0] for part in page.split("<details")[1:]]
        [shown] = [part for part in folded if "kaboom" in part and "Traceback" in part]
        assert "Traceback (most recent call last)" in shown
        assert "worker/repeat.py" not in shown


FOUR_CHECKPOINTS = """\
num_repeats: 3
checkpoint_configs:
- {spec: {a: {dtype: int32, shape: [1]}}}
- {spec: {a: {dtype: int32, shape: [2]}}}
- {spec: {a: {dtype: int32, shape: [3]}}}
- {spec: {a: {dtype: int32, shape: [4]}}}
"""


def test_a_class_that_cannot_pass_is_neither_tried_again_nor_measured_further(tmp_path):
    counted = f'open({str(tmp_path / "calls")!r}, "a").write(".")\n        undefined'
    ended = run(tmp_path, {"wrong": counted}, execution="retries: 1", more=FOUR_CHECKPOINTS)
    assert ended.code == 1, ended.output
    assert len((tmp_path / "calls").read_text()) == 3
    assert "the first 3 of 4 points failed for the same reason: NameError: " in ended.output


def test_of_a_point_that_cannot_pass_no_further_repeat_is_measured(tmp_path):
    bodies = {
        "wrong": f'open({str(tmp_path / "calls")!r}, "a").write(".")\n        undefined',
        "right": MEASURED,
    }
    ended = run(tmp_path, bodies, execution="retries: 1", more="num_repeats: 3\n")
    assert (tmp_path / "calls").read_text() == "."
    assert len(list((tmp_path / "out").glob("records/*/repeat_*/host_0.json"))) == 4
    assert "Bench[] would fail again in the same way: its other repeats are left out" in (
        ended.output
    )


def test_an_unknown_metric_key_is_an_error_that_lists_the_keys(mistaken):
    assert mistaken.record("unknown_key")["status"] == "failed"
    assert "unknown metric key 'nope'" in mistaken.output
    assert "jax_monitoring, device_memory, tensorstore" in mistaken.output


def test_each_process_logs_its_report_at_the_end_of_a_repeat(sound):
    assert sound.code == 0, sound.output
    (log,) = sound.folder.glob("logs/*.log")
    text = log.read_text()
    assert "metric report of process 0 of 1: Bench[] repeat 0: passed" in text
    assert "  outer_0_basics/time_s " in text


def test_nested_blocks_are_traced_each(sound):
    assert sound.code == 0, sound.output
    traces = sound.folder.glob("tensorboard/*/plugins/profile/*/*.xplane.pb")
    names = sorted(path.relative_to(sound.folder / "tensorboard").parts[0] for path in traces)
    assert [name.partition("__")[2] for name in names] == ["inner", "outer"]
