"""The compare-baseline component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from kfp import components

from orbax_bench_components.compare_baseline import compare_baseline
from orbax_bench_components.testing import call
from orbax_bench_core.config import UserError

COMPILED = Path(__file__).parents[1] / "component.yaml"


def test_the_compiled_component_is_this_one():
    loaded = components.load_component_from_file(str(COMPILED)).component_spec
    assert loaded.name == compare_baseline.component_spec.name
    assert loaded.inputs.keys() == compare_baseline.component_spec.inputs.keys()
    assert (loaded.outputs or {}).keys() == (compare_baseline.component_spec.outputs or {}).keys()


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError):
        call(compare_baseline, tmp_path / "made", output_directory=str(tmp_path))
