"""Paths that can be honoured."""

from pathlib import Path

import pytest

from orbax_bench_core.files import checked_path


@pytest.mark.parametrize(
    ("given", "checked"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("gs://bucket/a/", "gs://bucket/a"),
        ("~/a", str(Path.home() / "a")),
    ],
)
def test_a_path_is_given_in_full(given, checked):
    assert checked_path(given) == checked


@pytest.mark.parametrize("scheme", ["s3", "hdfs", "http"])
def test_what_orbax_would_write_into_a_local_folder_is_refused(scheme):
    with pytest.raises(ValueError, match=f"would put {scheme}:// data into a local folder"):
        checked_path(f"{scheme}://bucket/dir")
