"""The pipelines that compare, run here: verdict, exit code, baseline, passport."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_core.baselines import publish_run
from orbax_bench_core.records import RunDirectory
from tests.support.repositories import git  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

SUITE = """\
suite_name: steady
execution: {warmups: 0}
gate: {looks: [10, 20]}
benchmarks:
- generator: steady.Steady
  options: {}
"""
RELEASES = """\
suite_name: releases
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
gate: {looks: [10]}
environments:
- {name: before, requirements: ["orbax-checkpoint==0.12.7"]}
- {name: after, requirements: ["orbax-checkpoint==0.12.8"]}
arms: {baseline: {environment: before}, candidate: {environment: after}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def verdicts(tmp_path):
    return json.loads((tmp_path / "out" / "verdicts.json").read_text())


@pytest.mark.nightly
def test_a_suite_beside_itself_passes_and_is_captured(run_pipeline, git, tmp_path):
    registry, classes = tmp_path / "baselines", tmp_path / "repository"
    shutil.copy(Path(__file__).parents[2] / "integration" / "steady.py", classes)
    git("add", ".")
    git("commit", "-qm", "what is not committed is not promoted")
    captured = ("--set", f"registry={registry}", "--set", "promote=true")
    code, output = run_pipeline(SUITE, "regression", "--set", "arms={}", *captured, classes=classes)
    assert code == 0, output
    assert verdicts(tmp_path)["word"] == "PASS"
    assert "PASS" in output
    assert list(registry.glob(f"{git('rev-parse', 'HEAD')}/*/*.json"))


@pytest.mark.nightly
def test_a_slower_candidate_is_a_regression_and_is_not_captured(run_pipeline, tmp_path):
    registry = tmp_path / "baselines"
    arms = "arms={candidate: {options: {save_s: 0.06}}}"
    code, output = run_pipeline(SUITE, "regression", "--set", arms, "--set", f"registry={registry}")
    assert code == 3, output
    assert verdicts(tmp_path)["word"] == "REGRESSION"
    assert not registry.exists()


@pytest.mark.nightly
@pytest.mark.extended
def test_beside_a_stored_baseline_it_only_warns_and_captures_nothing(run_pipeline, tmp_path):
    baselines, registry = tmp_path / "baselines", tmp_path / "registry"
    suite = SUITE.replace("gate: {looks: [10, 20]}", "num_repeats: 4")
    code, output = run_pipeline(suite, "sweep")
    assert code == 0, output
    run = RunDirectory(str(tmp_path / "out"))
    publish_run(run, str(baselines), arm="candidate", promote=True, revision="first", force=True)
    shutil.rmtree(tmp_path / "out")
    # With one capture nobody can tell, which is 4 where arms are compared.
    flags = ("--set", f"baseline={baselines}", "--set", f"registry={registry}")
    code, output = run_pipeline(suite, "regression", *flags)
    assert code == 0, output
    assert verdicts(tmp_path)["word"] == "INCONCLUSIVE"
    assert "warning, for both sides were measured apart: INCONCLUSIVE" in output
    assert "is not captured: INCONCLUSIVE" in output
    assert not registry.exists()


@pytest.mark.nightly
@pytest.mark.extended
def test_a_calibration_writes_a_passport(run_pipeline, tmp_path):
    passport = tmp_path / "passport.json"
    code, output = run_pipeline(SUITE, "calibration", "--set", f"passport={passport}")
    assert code == 0, output
    assert {noise["operation"] for noise in json.loads(passport.read_text())["noise"]} == {
        "save",
        "load",
    }


@pytest.mark.nightly
def test_two_releases_of_orbax_are_compared(run_pipeline, tmp_path):
    code, output = run_pipeline(RELEASES, "regression")
    word = verdicts(tmp_path)["word"]
    # Which of the two is slower on this machine is not what is tested.
    assert code == {"REGRESSION": 3, "INCONCLUSIVE": 4, "PASS": 0}[word], output
    records = [json.loads(path.read_text()) for path in tmp_path.glob("out/records/**/host_0.json")]
    versions = {
        (record["arm"], record["provenance"]["versions"]["orbax-checkpoint"]) for record in records
    }
    assert versions == {("baseline", "0.12.7"), ("candidate", "0.12.8")}
    assert {record["status"] for record in records} == {"passed"}


@pytest.mark.nightly
@pytest.mark.extended
def test_a_slower_framework_is_an_answer_and_no_failure(run_pipeline, tmp_path):
    arms = "arms={candidate: {options: {save_s: 0.03}}}"
    code, output = run_pipeline(SUITE, "framework-comparison", "--set", arms)
    assert code == 0, output
    assert "Ratio: candidate (save_s=0.03) over baseline" in output
    [point] = verdicts(tmp_path)["points"]
    [save] = [one for one in point["operations"] if one["operation"] == "save"]
    assert save["verdict"]["ratio"] == pytest.approx(1.5, rel=0.1)


@pytest.mark.nightly
@pytest.mark.extended
def test_a_framework_that_cannot_be_measured_is_a_failure(run_pipeline, tmp_path):
    arms = "arms={candidate: {options: {fails_from: 0}}}"
    code, output = run_pipeline(SUITE, "framework-comparison", "--set", arms)
    assert code == 1, output
    assert "the storage is gone" in output
