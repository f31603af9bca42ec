"""Files that others wrote: read up to a limit, and never waited for."""

import os

import pytest
from etils import epath

from orbax_bench_core.files import read_at_most


@pytest.mark.parametrize(
    ("place", "reason"),
    [("/dev/zero", "Neither a file nor a folder"), ("pipe", "Neither a file nor a folder")],
)
def test_what_has_no_end_is_not_read(tmp_path, place, reason):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=reason):
        read_at_most(epath.Path(tmp_path / place))


def test_a_file_that_is_too_large_is_not_read_as_a_whole(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 2**20)
    assert len(read_at_most(epath.Path(tmp_path / "f"), 2**20)) == 2**20
    with pytest.raises(OSError, match="Larger than"):
        read_at_most(epath.Path(tmp_path / "f"), 2**20 - 1)
