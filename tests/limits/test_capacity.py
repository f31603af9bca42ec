import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.limits.scratch import fitting_bytes

MIB = 1 << 20


def test_disk_caps_at_half_of_what_is_free():
    found, why = fitting_bytes(100 * MIB, free_disk=40 * MIB, free_memory=800 * MIB)
    assert found == 20 * MIB
    assert why == "100 MiB was asked for, but only half of the 40 MiB of free disk may be used"


def test_memory_caps_at_an_eighth_of_what_is_free():
    found, why = fitting_bytes(100 * MIB, free_disk=None, free_memory=80 * MIB)
    assert found == 10 * MIB
    assert "an eighth of the 80 MiB of free memory" in why


def test_no_room_at_all_is_an_error():
    with pytest.raises(UserError, match="no space: only half of the 1 MiB of free disk"):
        fitting_bytes(100 * MIB, free_disk=MIB, free_memory=800 * MIB)


def test_too_few_bytes_are_refused_with_what_would_do():
    with pytest.raises(UserError, match="5 bytes are too few to measure; use at least 1 MiB"):
        fitting_bytes(5, free_disk=None, free_memory=800 * MIB)
