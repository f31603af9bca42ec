"""The async study pipeline, run here."""

import json

import pytest

pytest.importorskip("kfp")

pytestmark = pytest.mark.slow

SUITE = """\
suite_name: small async study
num_repeats: 2
execution: {warmups: 0}
checkpoint_configs:
- {name: small, spec: {w: {dtype: bfloat16, shape: [64, 32], sharding: [x]}}}
- {name: larger, spec: {w: {dtype: bfloat16, shape: [512, 512], sharding: [x]}}}
mesh_config: {mesh_axes: [x], ici_parallelism: {x: 2}}
benchmarks: [{generator: save_restore, options: {async_enabled: %s}}]
"""


@pytest.mark.nightly
def test_each_size_has_both_kinds_of_save(run_pipeline, tmp_path):
    code, output = run_pipeline(SUITE % "[true, false]", "async-study")
    assert code == 0, output
    study = json.loads((tmp_path / "out" / "async_study.json").read_text())
    [series] = study["series"]
    assert [size["num_parameters"] for size in series["sizes"]] == [64 * 32, 512 * 512]
    assert "blocked, async" in output
    assert (tmp_path / "out" / "async_study.html").exists()


@pytest.mark.nightly
def test_a_suite_with_one_kind_of_save_says_what_is_missing(run_pipeline):
    code, output = run_pipeline(SUITE % "true", "async-study")
    assert code == 2
    assert output.startswith("error: this suite saves no checkpoint in both ways")
