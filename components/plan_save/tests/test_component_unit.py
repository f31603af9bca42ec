"""The plan-save component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from kfp import components

from orbax_bench_components.plan_save import plan_save
from orbax_bench_components.testing import call
from orbax_bench_core.config import UserError

COMPILED = Path(__file__).parents[1] / "component.yaml"


def test_the_compiled_component_is_this_one():
    loaded = components.load_component_from_file(str(COMPILED)).component_spec
    assert loaded.name == plan_save.component_spec.name
    assert loaded.inputs.keys() == plan_save.component_spec.inputs.keys()
    assert (loaded.outputs or {}).keys() == (plan_save.component_spec.outputs or {}).keys()


def test_a_source_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(UserError, match="lama-8b"):
        call(plan_save, tmp_path / "made", source="lama-8b")
