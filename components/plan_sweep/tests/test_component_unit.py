"""The plan-sweep component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.testing import call
from orbax_bench_core.config import SuiteError

SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


@pytest.mark.slow
def test_a_suite_becomes_points_and_a_run_directory(tmp_path):
    run = str(tmp_path / "run")
    made = call(plan_sweep, tmp_path / "made", suite=SUITE, output_directory=run)
    assert len(made["Output"]) == 1
    assert made["planned"].uri == f"{run}/run.json"


def test_a_mistake_in_the_suite_is_named_with_its_line(tmp_path):
    with pytest.raises(SuiteError, match="benchmark"):
        call(plan_sweep, tmp_path, suite="suite_name: s\n", output_directory=str(tmp_path / "run"))
