"""The choose-folder component: the folder of a run, and of a slice."""

# ruff: noqa: D103

import re

import pytest

pytest.importorskip("kfp")

from orbax_bench_components.choose_folder import choose_folder

choose = choose_folder.python_func


def test_a_slice_is_a_folder_below_the_output_directory():
    assert choose("1234567890", "gs://b/out/", slice_name="v5e-2x4") == "gs://b/out/v5e-2x4"


def test_a_run_is_a_folder_that_sorts_by_time_and_is_chosen_once(tmp_path):
    folder = choose("1234567890", str(tmp_path), folder_per_run=True)
    assert re.fullmatch(rf"{tmp_path}/\d{{4}}-\d\d-\d\dT\d{{6}}Z-12345678", folder)
    there = tmp_path / "2026-11-24T000000Z-12345678"
    there.mkdir()
    # A step that is tried again, and the exit task, meet the others there.
    assert choose("1234567890", str(tmp_path), folder_per_run=True) == str(there)
