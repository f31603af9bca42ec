"""Files that others wrote: read up to a limit, and never waited for."""

import io
import os
import types

import pytest
from etils import epath

from orbax_bench_core.files import bounded, read_at_most


@pytest.mark.parametrize(
    ("place", "reason"),
    [("/dev/zero", "Neither a file nor a folder"), ("pipe", "Neither a file nor a folder")],
)
def test_what_has_no_end_is_not_read(tmp_path, place, reason):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=reason):
        read_at_most(epath.Path(tmp_path / place))


def test_an_object_that_is_too_large_is_not_fetched(monkeypatch):
    class Remote(io.BytesIO):
        size = 2**40

        def read(self, *_):
            raise AssertionError("it is fetched")

    found = types.SimpleNamespace(open=lambda _: Remote())
    monkeypatch.setattr(bounded, "place", lambda _: found)
    with pytest.raises(OSError, match="Larger than"):
        read_at_most("gs://bucket/object")
