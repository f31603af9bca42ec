"""The run-sweep-point component: its body on plain files."""

# ruff: noqa: D103

import json

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.run_sweep_point import run_sweep_point
from orbax_bench_components.testing import call
from orbax_bench_core.errors import UserError


def test_a_folder_without_a_run_is_refused_and_no_job_is_named(tmp_path):
    with pytest.raises(UserError):
        call(run_sweep_point, tmp_path / "made", point="0" * 12, output_directory=str(tmp_path))
    assert json.loads((tmp_path / "made" / "gcp_resources").read_text()) == {"resources": []}


def test_settings_of_a_launcher_need_one(tmp_path):
    given = {"point": "0" * 12, "output_directory": str(tmp_path), "tpu": "v5e:4x4"}
    with pytest.raises(UserError, match="name the launcher"):
        call(run_sweep_point, tmp_path / "made", **given)
