"""An object store that throttles, or is away for a while: for runs, steps and drills."""

import json
import subprocess
import sys

import pyarrow.parquet
import pytest

from tests.support.bucket import behind_faults
from tests.support.processes import run_cli

pytestmark = pytest.mark.nightly

SUITE = """\
suite_name: throttled
num_repeats: 2
execution: {warmups: 0}
benchmarks: [{generator: save_restore, options: {use_ocdbt: false}}]
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 64]}, b: {dtype: float32, shape: [64]}}}
"""


@pytest.fixture
def run(emulator, tmp_path):
    """Runs the suite behind a proxy that fails every so many requests."""

    def measure(status, every):
        with behind_faults(emulator, status, every) as environment:
            (tmp_path / "suite.yaml").write_text(SUITE)
            place = f"gs://bench-bucket/out{status}-{every}"
            words = ("run", "--no-lock", "--no-limits", tmp_path / "suite.yaml", "-o", place)
            done = run_cli(*words, environment=environment, COLUMNS="200")
        assert done.returncode == 0, done.stdout + done.stderr
        root = tmp_path / "storage" / ".cloudstorage" / "bench-bucket" / f"out{status}-{every}"
        records = [json.loads(path.read_text()) for path in root.glob("records/*/*/host_0.json")]
        return records, root, done.stdout

    return measure


@pytest.mark.parametrize(
    ("status", "kind"),
    [(503, "storage errors"), pytest.param(429, "throttled", marks=pytest.mark.extended)],
)
def test_samples_that_a_store_failed_are_flagged_in_every_output(run, status, kind):
    records, root, console = run(status, 4)
    troubles = [one for record in records for one in record["store_troubles"]]
    assert {one["kind"] for one in troubles} >= {kind, "retries"}
    assert {one["operation"] for one in troubles} >= {"save", "load"}
    assert all(record["status"] == "passed" for record in records)
    table = pyarrow.parquet.read_table(root / "samples.parquet").to_pylist()
    assert any(kind in row["flags"] for row in table)
    assert "repeats had trouble with storage" in console
    assert "repeats had trouble with storage" in (root / "report.md").read_text()


def test_a_store_that_works_flags_nothing_although_it_answers_404(run):
    records, _, console = run(503, 10**9)
    assert all(record["store_troubles"] == [] for record in records)
    metrics = {sample["metric"] for record in records for sample in record["samples"]}
    assert "6_tensorstore/http_404_count" in metrics
    assert "trouble with storage" not in console


AWAY = """\
suite_name: away
num_repeats: 2
execution: {warmups: 0}
benchmarks: [{generator: save_restore, options: {}}]
checkpoint_config: {spec: {w: {dtype: float32, shape: [64, 64]}}}
"""


@pytest.mark.extended
@pytest.mark.parametrize("when", ["from the start", "repeat 0: passed"])
def test_a_step_goes_on_when_its_bucket_is_back(emulator, tmp_path, when):
    place = "gs://bench-bucket/out"
    away, suite = tmp_path / "away", tmp_path / "suite.yaml"
    suite.write_text(AWAY)
    with behind_faults(emulator, 503, 10**9, "-", away) as environment:

        def step(*arguments):
            return subprocess.Popen(
                [sys.executable, "-m", "orbax_bench_core.cli", "step", *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )

        said = step("plan-sweep", suite, "-o", place).communicate(timeout=400)[0]
        [points] = json.loads(said.splitlines()[-1])
        if when == "from the start":
            away.touch()
        with step("run-sweep-point", points, "-o", place, "--no-limits", "--no-lock") as measuring:
            told = []
            for line in measuring.stdout:
                told.append(line)
                if when in line and not any("tried again" in one for one in told):
                    away.touch()
                if "the step is tried again" in line:
                    away.unlink(missing_ok=True)
            errors = measuring.stderr.read()
    assert measuring.returncode == 0, "".join(told) + errors
    assert json.loads(told[-1]) == ["passed"]
    assert any("the step is tried again in 10 s" in line for line in told), told
