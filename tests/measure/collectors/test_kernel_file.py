"""Files of the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orbax_bench_core.measure.collectors import base


def test_every_call_reads_anew(tmp_path: Path) -> None:
    file = tmp_path / "counter"
    file.write_text("1")
    read = base.reader(str(file))
    assert read is not None
    read(0)

    file.write_text("2")

    assert read(0) == b"2"


def test_a_file_is_opened_once() -> None:
    assert base.reader("/proc/self/stat") is base.reader("/proc/self/stat")


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    assert base.reader(str(tmp_path / "none")) is None


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
