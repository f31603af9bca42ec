"""The resident set size."""

from __future__ import annotations

import os

import psutil
import pytest

from orbax_bench_core.measure.collectors import base, resident_memory

MIB = 2**20


def test_without_a_kernel_file_psutil_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "reader", lambda path: None)
    expected = psutil.Process().memory_info().rss

    assert abs(resident_memory.resident_bytes() - expected) <= MIB


def test_a_forked_process_reads_itself() -> None:
    resident_memory._process(os.getpid())

    assert resident_memory._process(os.getppid()).pid == os.getppid()
