"""The calibrate component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.calibrate import calibrate
from orbax_bench_components.testing import call, has_interface
from orbax_bench_core.errors import UserError


def test_the_compiled_component_is_this_one():
    assert has_interface(calibrate, Path(__file__).parents[1] / "component.yaml")


def test_a_folder_without_comparisons_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        call(calibrate, tmp_path / "made", runs=[str(tmp_path)])
