"""The kernel's mark of the largest resident set."""

from __future__ import annotations

import pytest

from orbax_bench_core.measure.collectors import base, resident_memory


def test_a_process_that_may_not_reset_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_memory, "_switch", lambda pid: None)

    with pytest.raises(OSError, match="ask has_mark"):
        resident_memory.reset_mark()


def test_a_kernel_without_the_mark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "reader", lambda path: lambda offset: b"Name:\tpython\n")

    with pytest.raises(OSError, match="no VmHWM: line"):
        resident_memory.read_mark()
