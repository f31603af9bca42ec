"""The kernel's mark of the largest resident set."""

from __future__ import annotations

import pytest

from orbax_bench_core.measure.collectors import base, resident_memory
from orbax_bench_core.measure.collectors.resident_memory import resident_bytes

MIB = 2**20

needs_mark = pytest.mark.skipif(
    not resident_memory.has_mark(), reason="the kernel lets nobody reset VmHWM"
)


@needs_mark
def test_the_mark_remembers_what_is_gone() -> None:
    resident_memory.reset_mark()
    before = resident_bytes()

    len(b"x" * (64 * MIB))

    assert resident_memory.read_mark() - before >= 60 * MIB


@needs_mark
def test_a_reset_forgets_it() -> None:
    len(b"x" * (64 * MIB))

    resident_memory.reset_mark()

    assert resident_memory.read_mark() - resident_bytes() <= 8 * MIB


def test_a_process_that_may_not_reset_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_memory, "_switch", lambda pid: None)

    with pytest.raises(OSError, match="ask has_mark"):
        resident_memory.reset_mark()


def test_a_kernel_without_the_mark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "reader", lambda path: lambda offset: b"Name:\tpython\n")

    with pytest.raises(OSError, match="no VmHWM: line"):
        resident_memory.read_mark()


def test_without_the_switch_it_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_memory, "_switch", lambda pid: None)

    assert not resident_memory.has_mark()
