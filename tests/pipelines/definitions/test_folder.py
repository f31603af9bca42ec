import re

import pytest

pytest.importorskip("kfp")

from orbax_bench_pipelines.definitions.own import choose_folder

choose = choose_folder.python_func


def test_a_slice_is_a_folder_below_the_output_directory():
    assert choose("gs://b/out/", slice_name="v5e-2x4") == "gs://b/out/v5e-2x4"


def test_a_run_is_a_folder_that_sorts_by_time():
    folder = choose("gs://b/out", run="1234567890")
    assert re.fullmatch(r"gs://b/out/\d{4}-\d\d-\d\dT\d{6}Z-12345678", folder)
