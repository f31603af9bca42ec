"""The best component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from kfp import components

from orbax_bench_components.best import best
from orbax_bench_components.testing import call
from orbax_bench_core.config import UserError

COMPILED = Path(__file__).parents[1] / "component.yaml"


def test_the_compiled_component_is_this_one():
    loaded = components.load_component_from_file(str(COMPILED)).component_spec
    assert loaded.name == best.component_spec.name
    assert loaded.inputs.keys() == best.component_spec.inputs.keys()
    assert (loaded.outputs or {}).keys() == (best.component_spec.outputs or {}).keys()


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError):
        call(best, tmp_path / "made", output_directory=str(tmp_path))
