"""Places by the names that people give them."""

import os

import pytest
from etils import epath

from orbax_bench_core.files import checked_path, place, read_at_most


@pytest.mark.parametrize("uri", ["ftp://host/x", "s3://bucket/x", "http://host/x"])
def test_what_cannot_be_read_and_written_is_refused_by_its_scheme(uri):
    with pytest.raises(OSError, match=f"local paths and gs:// only .*{uri}"):
        place(uri)
    with pytest.raises(OSError, match="local paths and gs:// only"):
        read_at_most(uri)


def test_a_file_uri_is_a_local_path(tmp_path):
    (tmp_path / "a").write_bytes(b"whole")
    assert place(f"file://{tmp_path}/a") == epath.Path(tmp_path / "a")
    assert read_at_most(f"file://{tmp_path}/a") == b"whole"


def test_a_path_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match=r"cannot use .*caf.udce9.*: its bytes are no UTF-8"):
        checked_path(os.fsdecode(b"caf\xe9"))


@pytest.mark.parametrize("named", ["gs:/bucket/x", "gs:bucket/x", "file:/x"])
def test_an_address_that_lacks_a_slash_is_no_folder_of_that_name(named):
    scheme = named.partition(":")[0]
    with pytest.raises(ValueError, match=f"an address begins with {scheme}://, got '{named}'"):
        checked_path(named)
    assert checked_path(f"./{named}").endswith(f"/{named}")
