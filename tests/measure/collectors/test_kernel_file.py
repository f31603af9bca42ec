"""Files of the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orbax_bench_core.measure.collectors import base


def test_a_forked_process_opens_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = base.reader("/proc/self/stat")
    monkeypatch.setattr(os, "getpid", os.getppid)

    assert base.reader("/proc/self/stat") is not before


def test_a_long_file_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "long"
    file.write_bytes(bytes(100_000))
    read = base.reader(str(file))
    assert read is not None

    assert len(base.read_all(read)) == 100_000
