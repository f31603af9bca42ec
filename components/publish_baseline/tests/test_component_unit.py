"""The publish-baseline component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_a_folder_without_a_run_is_no_baseline(tmp_path):
    given = {"output_directory": str(tmp_path), "registry": str(tmp_path / "registry")}
    with pytest.raises(UserError):
        call(publish_baseline, tmp_path / "made", **given)
    assert not (tmp_path / "registry").exists()
