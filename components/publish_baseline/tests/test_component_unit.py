"""The publish-baseline component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.publish_baseline import publish_baseline
from orbax_bench_components.testing import call, has_interface
from orbax_bench_core.errors import UserError


def test_the_compiled_component_is_this_one():
    assert has_interface(publish_baseline, Path(__file__).parents[1] / "component.yaml")


def test_a_folder_without_a_run_is_no_baseline(tmp_path):
    given = {"output_directory": str(tmp_path), "registry": str(tmp_path / "registry")}
    with pytest.raises(UserError):
        call(publish_baseline, tmp_path / "made", **given)
    assert not (tmp_path / "registry").exists()
