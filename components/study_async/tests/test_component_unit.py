"""The study-async component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.study_async import study_async
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match="is not a run directory"):
        call(study_async, tmp_path / "made", output_directory=str(tmp_path))
