"""The place for one process-wide value."""

from __future__ import annotations

import pytest

from orbax_bench_core.measure.observers import Slot


def test_the_slot_holds_its_value_for_as_long_as_asked() -> None:
    slot: Slot[str] = Slot("trying")

    with slot.holding("value"):
        inside = slot.get()

    assert (inside, slot.get()) == ("value", None)


def test_a_taken_slot_says_so() -> None:
    slot: Slot[str] = Slot("trying")

    with slot.holding("first"), pytest.raises(RuntimeError, match="trying is already active"):
        slot.holding("second").__enter__()


def test_an_error_empties_the_slot() -> None:
    slot: Slot[str] = Slot("trying")

    with pytest.raises(OSError, match="inside"), slot.holding("value"):
        raise OSError("inside")

    assert slot.get() is None
