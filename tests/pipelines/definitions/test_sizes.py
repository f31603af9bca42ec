"""Large sweeps and lost steps, for real, through kfp's SubprocessRunner."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet
import pytest

pytest.importorskip("kfp")

from orbax_bench_core.lineage import trace
from tests.pipelines.conftest import sets
from tests.support.processes import start_cli, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

POINTS = 1200
AT_ONCE = sets("lock=false", "measure_limits=false")
"""Nothing here is slow enough to be disturbed."""


def suite(options):
    return {
        "suite_name": "noop",
        "num_repeats": 1,
        "execution": {"warmups": 0, "retries": 0},
        "benchmarks": [{"generator": "noop_benchmark.Noop", "options": options}],
    }


@pytest.fixture
def run(run_pipeline):
    """Runs a suite by a pipeline; returns how it ended, and all that it said."""
    return lambda given, pipeline, *flags: run_pipeline(
        json.dumps(given), pipeline, *flags, classes=Path(__file__).parent
    )


def test_a_step_that_is_killed_loses_its_own_points_alone(run, tmp_path):
    given = suite({"number": [0, 1], "kills": [False, True]})
    code, said = run(given, "sweep", *sets("points_per_step=1"), *AT_ONCE)
    assert code == 1, said
    out = tmp_path / "out"
    assert pyarrow.parquet.read_table(out / "samples.parquet").num_rows > 0
    assert (out / "report.html").exists()
    assert json.loads((out / "run.json").read_text())["status"] == "incomplete"
    # The report is shown, and the failure says what it lacks.
    assert "Noop[number=0,kills=false]" in said
    assert "left nothing, and 1 of its points have no record" in said
    assert ": incomplete" in said
    statuses = [found.status for found in trace(str(out)) if found.what == "batch"]
    assert sorted(statuses) == ["missing", "missing", "unchanged", "unchanged"]


def comparison(options):
    given = suite({"lasts_s": 0.02, **options})
    return {**given, "arms": {}, "gate": {"looks": [10]}}


def test_a_comparison_whose_step_is_killed_is_judged_by_what_is_there_and_has_failed(run, tmp_path):
    code, said = run(comparison({"kills": [False, True]}), "regression", *sets("lock=false"))
    # Not 4: what was not measured is a failure, and no verdict of too few blocks.
    assert code == 1, said
    out = tmp_path / "out"
    found = json.loads((out / "verdicts.json").read_text())
    judged = {point["point"]: point for point in found["points"]}
    # Its word is left to noise, which may have it measured in lives as well.
    assert judged["Noop[kills=false]"]["blocks"] >= 5
    assert judged["Noop[kills=true]"]["blocks"] == 0
    assert (out / "report.html").exists() and (out / "verdicts.html").exists()
    [failure] = [line for line in said.splitlines() if line.startswith("The pipeline failed")]
    assert "Inner task failed: 'run-sweep-point'" in failure
    # What is lacking stands in the line of the exit task, and in its artifact.
    [ended] = [line for line in said.splitlines() if line.startswith("FAILED: ")]
    lost = next(point for name, point in judged.items() if name == "Noop[kills=true]")
    assert f"{lost['point_id']}: incomplete" in ended
    assert f"{lost['point_id']}: incomplete" in (out / "ending.md").read_text()
    assert "left nothing, and 1 of its points have no record" in ended


@pytest.mark.extended
def test_a_killed_step_that_is_tried_again_goes_on_and_nothing_is_lost(run, tmp_path):
    given = comparison({"kills": True, "once": str(tmp_path / "killed")})
    code, said = run(given, "regression", *sets("lock=false", "retries=1", "backoff_s=1"))
    assert code == 0, said
    assert (tmp_path / "killed").exists()
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "complete"


@pytest.mark.parametrize(
    ("notice", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.extended),
        (signal.SIGTERM, 130),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_run_that_is_ended_leaves_no_step_behind(tmp_path, notice, code):
    (tmp_path / "suite.yaml").write_text(json.dumps(suite({"lasts_s": 300.0})))
    words = ("pipeline", "run", tmp_path / "suite.yaml", "-o", tmp_path / "out", *AT_ONCE)
    classes = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = start_cli(*words, environment=classes)
    wait_until(lambda: any("orbax_bench_core.worker" in " ".join(one) for one in _below(process)))
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(notice)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    assert "Traceback" not in output
    _, left = psutil.wait_procs(started, timeout=60)
    assert not left


def _below(process):
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            yield child.cmdline()


CACHED = """
import sys
from pathlib import Path
from kfp import local
from orbax_bench_pipelines.definitions import find_pipeline
from orbax_bench_pipelines.targets import Placement
from orbax_bench_pipelines.targets.local import own_processes

here = Path.cwd()
runner = local.SubprocessRunner(use_venv=False)
with own_processes(here):
    places = {"pipeline_root": f"{here}/root", "workspace_root": f"{here}/workspace"}
    local.init(runner, **places, enable_caching=True, cache_root=f"{here}/kept")
    find_pipeline("sweep").build(Placement())(
        suite=Path("suite.yaml").read_text(),
        output_directory=f"{here}/out",
        measure_limits=False,
        lock=False,
        go_on=True,
    )
"""


def test_nothing_comes_from_a_cache_after_records_were_deleted(tmp_path):
    (tmp_path / "suite.yaml").write_text(json.dumps(suite({})))
    (tmp_path / "cached.py").write_text(CACHED)
    out, written = tmp_path / "out", []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "cached.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads((out / "run.json").read_text())["status"] == "complete"
        [record] = out.glob("records/*/repeat_0/host_0.json")
        # A cache that knows the artifacts alone finds them all as they were.
        shutil.rmtree(record.parents[1])
        written.append((out / "report.html").stat().st_mtime_ns)
    assert written[0] < written[1], "aggregate was served from the cache"
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.extended
def test_1200_points_run_in_big_batches(run, tmp_path):
    began = time.monotonic()
    given = suite({"number": list(range(POINTS))})
    code, said = run(given, "sweep", *sets(f"points_per_step={POINTS // 2}"), *AT_ONCE)
    assert code == 0, said[-2000:]
    table = pyarrow.parquet.read_table(tmp_path / "out" / "samples.parquet", columns=["point_id"])
    assert len(set(table["point_id"].to_pylist())) == POINTS
    noted = json.loads((tmp_path / "out" / "lineage.json").read_text())["batches"]
    assert [batch["points"] for batch in noted.values()] == [POINTS // 2] * 2
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - began:.0f} s, {cpu.ru_utime:.0f} s CPU, {cpu.ru_maxrss >> 10} MiB")
