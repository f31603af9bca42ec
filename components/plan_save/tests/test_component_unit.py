"""The plan-save component: its body on plain files."""

# ruff: noqa: D103

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.plan_save import plan_save
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown model"):
        call(plan_save, tmp_path / "made", source="llama-9b")


def test_an_answer_is_written_as_json_markdown_and_a_page(tmp_path):
    made = call(plan_save, tmp_path, source="llama-8b@0.01")
    assert made["Output"] == []
    assert '"write_bytes"' in Path(made["answer"].path).read_text()
    assert Path(made["report"].path).read_text().startswith("<!doctype html>")
    assert made["summary"].metadata["orbax_bench_type"] == "plan-summary"
