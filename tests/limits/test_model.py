import math

import pydantic
import pytest

from orbax_bench_core.limits.model import ProbeResult
from tests.support.limits import GIB

MEASURED = ProbeResult(name="read_warm", num_bytes=GIB, seconds=(0.5, 0.25, 0.75, 0.25, 1.0))


def test_speed_is_bytes_over_the_median_time_and_spread_the_interquartile_range_over_it():
    assert (MEASURED.median_s, MEASURED.gib_per_s, MEASURED.spread) == (0.5, 2.0, 1.0)


@pytest.mark.parametrize("given", [{}, {"seconds": (1.0,), "reason": "not cold"}])
def test_a_probe_has_times_or_a_reason(given):
    with pytest.raises(pydantic.ValidationError, match="either seconds or a reason"):
        ProbeResult(name="read_warm", num_bytes=GIB, **given)


@pytest.mark.parametrize(
    ("num_bytes", "seconds"),
    [
        (GIB, 0.0),
        (GIB, -1.0),
        (GIB, math.inf),
        (GIB, math.nan),
        (10**300, 1.0),
        (-1, 1.0),
        (0, 1.0),
    ],
)
def test_times_and_bytes_that_nothing_can_take_are_refused(num_bytes, seconds):
    with pytest.raises(pydantic.ValidationError):
        ProbeResult(name="read_warm", num_bytes=num_bytes, seconds=(seconds,))
