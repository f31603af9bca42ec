"""The sweep pipeline, for real, through kfp's SubprocessRunner."""

import functools
import json
import re
from pathlib import Path

import pyarrow.parquet
import pytest

from orbax_bench_core.execute import measuring_lock
from orbax_bench_core.lineage import baseline_digest
from tests.pipelines.conftest import sets
from tests.support.processes import run_cli

pytestmark = pytest.mark.slow

SUITE = """
suite_name: small
num_repeats: 2
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]
"""


orbax_bench = functools.partial(run_cli, COLUMNS="160", PYTHONPATH=str(Path(__file__).parent))


def run_by_pipeline(suite, out, *settings):
    given = sets("measure_limits=false", *settings)
    return orbax_bench("pipeline", "run", suite, "-o", out, *given)


def layout(directory):
    """Files of a run directory, but for Orbax's own, whose names are hashes.

    Event files are named after the run that they belong to, which is another one each time. Leases
    and heartbeats are of batches where these have steps, and of the whole run otherwise.
    """
    return {
        re.sub(r"tfevents\..*", "tfevents", str(path.relative_to(directory)))
        for path in directory.rglob("*")
        if path.is_file()
        and path.parent.name not in ("leases", "batches", "heartbeats")
        and "ckpt" not in path.parts
    }


def verdicts(directory):
    """What a comparison with a baseline adds to a run directory."""
    return {path for path in layout(directory) if path.startswith(("verdicts", "junit"))}


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    folder = tmp_path_factory.mktemp("direct")
    suite = folder / "suite.yaml"
    suite.write_text(SUITE)
    done = orbax_bench("run", suite, "--no-limits", "--output-directory", folder / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    return suite, folder / "out"


@pytest.mark.nightly
def test_gives_the_same_run_directory_as_run(direct, tmp_path):
    suite, directory = direct
    done = run_by_pipeline(suite, tmp_path / "out", f"baseline={directory}")
    assert done.returncode == 0, done.stdout + done.stderr
    more = verdicts(tmp_path / "out") | {"ending.md", "engine_run.json"}  # of the service
    assert layout(tmp_path / "out") - more == layout(directory)
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["status"] == "complete"
    assert "repeat 1: passed" in done.stdout
    assert "the two sides were measured apart" in " ".join(done.stdout.split())
    # The baseline came as an artifact, and the verdict is of just that.
    made = json.loads((tmp_path / "out" / "lineage.json").read_text())["made"]["verdicts.json"]
    assert made["inputs"][f"baseline:{directory}"] == baseline_digest(str(directory))
    columns = ["point_id", "repeat", "warmup", "operation"]
    measured = [
        {
            tuple(row.values())
            for row in pyarrow.parquet.read_table(
                place / "samples.parquet", columns=columns
            ).to_pylist()
        }
        for place in (directory, tmp_path / "out")
    ]
    assert measured[0] == measured[1]


@pytest.mark.nightly
def test_a_failing_point_is_data(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "suite_name: failing\n"
        "execution: {retries: 0, warmups: 0}\n"
        "checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}\n"
        "benchmarks: [{generator: failing_benchmark.Failing, options: {fail: [true, false]}}]\n"
    )
    done = run_by_pipeline(suite, tmp_path / "out")
    assert done.returncode == 1, done.stdout + done.stderr
    records = [json.loads(path.read_text()) for path in (tmp_path / "out").rglob("host_0.json")]
    assert sorted(record["status"] for record in records) == ["failed", "passed"]
    assert "failed on purpose" in done.stdout
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.nightly
def test_a_missing_checkpoint_is_generated_before_it_is_loaded(tmp_path):
    fixture = tmp_path / "fixture.yaml"
    fixture.write_text(SUITE)
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        SUITE.replace(
            "checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}",
            f"checkpoint_config: {{path: {tmp_path}/checkpoint}}",
        )
    )
    missing = run_by_pipeline(suite, tmp_path / "none")
    assert missing.returncode == 1
    done = run_by_pipeline(suite, tmp_path / "out", f"fixture={fixture}")
    assert done.returncode == 0, done.stdout + done.stderr
    [record, *_] = [json.loads(p.read_text()) for p in (tmp_path / "out").rglob("host_0.json")]
    assert record["state"]["num_bytes"] == 64 * 32 * 2
    assert record["state"]["verified"] == "saved"


@pytest.mark.nightly
@pytest.mark.extended
def test_a_class_beside_the_suite_is_found(tmp_path):
    beside = Path(__file__).with_name("failing_benchmark.py").read_text()
    (tmp_path / "own_benchmark.py").write_text(beside)
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "suite_name: own\nexecution: {warmups: 0}\n"
        "benchmarks: [{generator: own_benchmark.Failing, options: {}}]\n"
    )
    done = run_by_pipeline(suite, tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.extended
def test_a_flag_measures_while_another_run_does(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "suite_name: impatient\nexecution: {warmups: 0}\n"
        "benchmarks: [{generator: failing_benchmark.Failing, options: {}}]\n"
    )
    with measuring_lock(lambda line: None):
        done = run_by_pipeline(suite, tmp_path / "out", "lock=false")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "waiting" not in done.stdout


@pytest.mark.nightly
def test_a_class_that_does_not_import_stops_before_any_step(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite_name: x\nbenchmarks: [{generator: no.such.Thing, options: {}}]\n")
    done = run_by_pipeline(suite, tmp_path / "out")
    assert done.returncode == 2
    assert f"{suite}:2: benchmarks[0].generator: cannot import 'no.such'" in done.stderr
    assert "Traceback" not in done.stderr
