"""The compare-baseline component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError):
        call(compare_baseline, tmp_path / "made", output_directory=str(tmp_path))
