"""The generate-checkpoint component: its body on plain files."""

# ruff: noqa: D103

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.generate_checkpoint import generate_checkpoint
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def suite(path):
    return f"""
suite_name: loading
checkpoint_config: {{path: {path}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""


def test_a_checkpoint_that_is_there_is_an_artifact_that_points_at_it(tmp_path):
    place = tmp_path / "checkpoint"
    place.mkdir()
    (place / "_METADATA").write_text("{}")
    made = call(generate_checkpoint, tmp_path / "made", suite=suite(place))
    assert made["checkpoint"].uri == str(place)
    assert made["checkpoint"].metadata["digest"].startswith("sha256:")


def test_one_that_is_missing_needs_a_fixture(tmp_path):
    with pytest.raises(UserError, match="fixture"):
        call(generate_checkpoint, tmp_path / "made", suite=suite(tmp_path / "none"))
