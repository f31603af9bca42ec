"""The recovery component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.recovery import recovery
from orbax_bench_components.testing import call, has_interface
from orbax_bench_core.errors import UserError

SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def test_the_compiled_component_is_this_one():
    assert has_interface(recovery, Path(__file__).parents[1] / "component.yaml")


def test_a_suite_without_a_trainer_is_refused(tmp_path):
    with pytest.raises(UserError, match="training_job"):
        call(recovery, tmp_path / "made", suite=SUITE, output_directory=str(tmp_path))
