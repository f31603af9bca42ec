from pathlib import Path

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_pipelines.targets.docker import host_paths

SUITE = (
    "suite_name: x\ncheckpoint_config: {{path: {path}}}\n"
    "benchmarks: [{{generator: save_restore, options: {{}}}}]\n"
)


def test_the_run_directory_is_made_and_written_to(tmp_path):
    assert host_paths({"output_directory": str(tmp_path / "new/run")}, {}) == {
        tmp_path / "new/run": True
    }
    assert (tmp_path / "new/run").is_dir()


def test_a_bucket_needs_no_folder():
    assert host_paths({"output_directory": "gs://bucket/run", "baseline": ""}, {}) == {}


def test_a_checkpoint_that_is_loaded_is_seen(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    assert host_paths({"suite": SUITE.format(path=checkpoint)}, {}) == {checkpoint: True}


def test_a_checkpoint_that_is_to_be_made_is_made_here(tmp_path):
    suite = SUITE.format(path=tmp_path / "later/checkpoint")
    assert host_paths({"suite": suite, "fixture": suite}, {}) == {tmp_path: True}


def test_a_baseline_is_only_read(tmp_path):
    assert host_paths({"baseline": str(tmp_path)}, {}) == {tmp_path: False}


def test_a_baseline_that_is_also_the_run_directory_is_written_to(tmp_path):
    arguments = {"output_directory": str(tmp_path), "baseline": str(tmp_path)}
    assert host_paths(arguments, {}) == {tmp_path: True}


def test_a_registry_of_baselines_is_written_to(tmp_path):
    assert host_paths({"registry": str(tmp_path / "later")}, {}) == {tmp_path: True}


def test_a_passport_is_written_beside_its_name_and_earlier_runs_are_only_read(tmp_path):
    (tmp_path / "earlier").mkdir()
    arguments = {"passport": str(tmp_path / "noise.json"), "earlier": str(tmp_path / "earlier")}
    assert host_paths(arguments, {}) == {tmp_path: True, tmp_path / "earlier": False}


def test_folders_of_benchmark_classes_and_credentials_are_only_read(tmp_path):
    key = tmp_path / "key.json"
    key.touch()
    environment = {"PYTHONPATH": f"{tmp_path}:", "GOOGLE_APPLICATION_CREDENTIALS": str(key)}
    assert host_paths({}, environment) == {tmp_path: False, key: False}


def test_a_folder_of_the_image_is_never_hidden():
    assert host_paths({"suite": SUITE.format(path="/usr"), "baseline": "/etc"}, {}) == {}


@pytest.mark.parametrize("folder", ["/", "/usr", "/var"])
def test_results_cannot_hide_the_image(folder):
    with pytest.raises(UserError, match="would hide the files of its image"):
        host_paths({"output_directory": folder}, {})


def test_below_such_a_folder_is_fine(tmp_path):
    assert host_paths({"baseline": "/usr/share"}, {}) == {Path("/usr/share"): False}
