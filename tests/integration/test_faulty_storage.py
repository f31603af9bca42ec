"""An object store that throttles: its samples are flagged, stay, and take the verdict away."""

import json

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
