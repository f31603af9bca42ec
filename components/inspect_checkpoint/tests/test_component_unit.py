"""The inspect-checkpoint component: its compiled form, and its body on plain files."""

from pathlib import Path

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.inspect_checkpoint import inspect_checkpoint
from orbax_bench_components.testing import call, has_interface
from orbax_bench_core.errors import UserError


def test_the_compiled_component_is_this_one():
    assert has_interface(inspect_checkpoint, Path(__file__).parents[1] / "component.yaml")


def test_what_is_wrong_is_returned_and_written(tmp_path):
    (tmp_path / "_CHECKPOINT_METADATA").write_text("{}")
    made = call(inspect_checkpoint, tmp_path / "made", checkpoint=str(tmp_path))
    assert made["Output"]
    assert made["Output"][0] in Path(made["answer"].path).read_text()


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(UserError, match="not an Orbax checkpoint"):
        call(inspect_checkpoint, tmp_path / "made", checkpoint=str(tmp_path))
