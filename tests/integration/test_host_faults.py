"""Faults between three hosts, each with an address and a name of its own, and real workers."""

import pytest

from tests.support.host_faults import FAULTS, SIZE, strike
from tests.support.namespaces import Lab, why_not

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces: {why_not()}"),
]


@pytest.fixture
def lab():
    """Three hosts."""
    with Lab(SIZE) as made:
        yield made


EVERY_NIGHT = {"head_killed"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, marks=[] if fault in EVERY_NIGHT else pytest.mark.extended)
        for fault in FAULTS
    ],
)
def test_a_fault_is_named_and_ends_as_it_should(lab, tmp_path, fault):
    strike(fault, lab, tmp_path, real=True)
