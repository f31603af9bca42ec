"""The soak component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.soak import soak
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError

SUITE = """
suite_name: small
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def test_saves_that_are_too_few_for_a_verdict_are_refused(tmp_path):
    with pytest.raises(UserError, match="gives no verdict"):
        call(soak, tmp_path / "made", suite=SUITE, saves=5, output_directory=str(tmp_path))
