import datetime
import math

import pydantic
import pytest

from orbax_bench_core.limits.model import Limits, ProbeResult, Surroundings

GIB = 2**30
MEASURED = ProbeResult(name="read_warm", num_bytes=GIB, seconds=(0.5, 0.25, 0.75, 0.25, 1.0))
MISSING = ProbeResult(name="read_cold", num_bytes=GIB, reason="not cold")


@pytest.fixture
def limits():
    return Limits(
        path="/disk",
        requested_bytes=2 * GIB,
        num_bytes=GIB,
        capped_by="half of the disk",
        num_threads=2,
        dtype="float32",
        taken_at=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        duration_s=3.0,
        surroundings=Surroundings(
            host_memory="reused",
            load_average=0.5,
            available_memory_bytes=8 * GIB,
            free_disk_bytes=None,
            page_bytes=4096,
        ),
        provenance={"python": "3.11"},
        probes=(MEASURED, MISSING),
    )


def test_speed_is_bytes_over_the_median_time():
    assert (MEASURED.median_s, MEASURED.gib_per_s) == (0.5, 2.0)


def test_spread_is_the_interquartile_range_over_the_median():
    assert MEASURED.spread == 1.0


@pytest.mark.parametrize("given", [{}, {"seconds": (1.0,), "reason": "not cold"}])
def test_a_probe_has_times_or_a_reason(given):
    with pytest.raises(pydantic.ValidationError, match="either seconds or a reason"):
        ProbeResult(name="read_warm", num_bytes=GIB, **given)


def test_times_grow_with_the_bytes(limits):
    assert limits.seconds("read_warm", 3 * GIB) == 1.5


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


def test_a_time_without_a_zone_is_refused(limits):
    content = limits.model_dump() | {"taken_at": datetime.datetime(2026, 1, 2)}  # noqa: DTZ001
    with pytest.raises(pydantic.ValidationError, match="timezone"):
        Limits.model_validate(content)
