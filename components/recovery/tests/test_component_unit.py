"""The recovery component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.recovery import recovery
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError

SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def test_a_suite_that_trains_nothing_is_refused(tmp_path):
    with pytest.raises(UserError, match="training_job"):
        call(recovery, tmp_path / "made", suite=SUITE, output_directory=str(tmp_path))
