"""The aggregate component: its compiled form, and its body on plain files."""

# ruff: noqa: D103

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.aggregate import aggregate
from orbax_bench_components.plan_sweep import plan_sweep
from orbax_bench_components.testing import call, has_interface
from orbax_bench_core.errors import UserError

SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def test_the_compiled_component_is_this_one():
    assert has_interface(aggregate, Path(__file__).parents[1] / "component.yaml")


@pytest.mark.slow
def test_a_run_without_records_has_a_report_that_says_what_it_lacks(tmp_path):
    run = str(tmp_path / "run")
    [point] = call(plan_sweep, tmp_path / "planned", suite=SUITE, output_directory=run)["Output"]
    made = call(aggregate, tmp_path / "made", output_directory=run)
    lost, incomplete = made["Output"]
    assert lost == f"the step of {point} left nothing, and 1 of its points have no record"
    assert incomplete.endswith(f"{point}: incomplete")
    assert Path(made["report"].path).read_text().startswith("<!doctype html>")
    assert made["samples"].metadata["orbax_bench_type"] == "samples"


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match="run"):
        call(aggregate, tmp_path / "made", output_directory=str(tmp_path))
