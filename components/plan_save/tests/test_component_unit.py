"""The plan-save component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.plan_save import plan_save
from orbax_bench_components.testing import call, has_interface
from orbax_bench_core.errors import UserError


def test_the_compiled_component_is_this_one():
    assert has_interface(plan_save, Path(__file__).parents[1] / "component.yaml")


def test_a_plan_is_returned_as_json_markdown_and_a_page(tmp_path):
    made = call(plan_save, tmp_path / "made", source="llama-8b@0.01")
    assert made["Output"] == []
    assert '"files"' in Path(made["answer"].path).read_text()
    assert Path(made["report"].path).read_text().startswith("<!doctype html>")


def test_a_model_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown model"):
        call(plan_save, tmp_path / "made", source="llama-9b")
