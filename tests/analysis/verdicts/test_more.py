"""Whether more operations would give a verdict, and how many."""

import pytest

from orbax_bench_core.analysis.verdicts import going_on
from orbax_bench_core.config import GateConfig
from orbax_bench_core.gate import SeriesHealth
from tests.support.verdicts import build_operation, build_point

GATE = GateConfig(metrics={"load": {"margin": 0.2}})


def series(**fields):
    return SeriesHealth(n=20, median=1.0, **fields)


def open_point(*more_blocks, endpoint="time", settled=True, health=None, **fields):
    """A point of operations that each need so many more blocks."""
    words = {"time_word": "INCONCLUSIVE" if endpoint == "time" else "PASS", "endpoint": endpoint}
    operations = [
        build_operation(
            f"save{number}",
            "INCONCLUSIVE",
            blocks=30,
            verdict={"settled": settled, "more_blocks": blocks, **words},
            **({} if health is None else {"health": health}),
        )
        for number, blocks in enumerate(more_blocks)
    ]
    return build_point("p", *operations, endpoint=endpoint, settled=settled, **fields)


@pytest.mark.parametrize(
    ("point", "why", "flag"),
    [
        (open_point(20), "more", "--more"),
        (open_point(20, 54), "more", "--more 108"),
        (open_point(20, None), "unlikely", ""),
        (open_point(None, endpoint="stalls"), "more", "--more"),
        (open_point(20, endpoint="missing"), "no_use", ""),
        (open_point(20, endpoint="storage"), "no_use", ""),
        (open_point(20, failed=True), "no_use", ""),
        (open_point(20, settled=False), "unfinished", ""),
        (open_point(20, mode="unpaired"), "unpaired", ""),
        (build_point(), "decided", ""),
    ],
)
def test_it_says_whether_more_would_help_and_how_much(point, why, flag):
    found = going_on(point, GATE)
    assert (found.why, found.flag) == (why, flag)
    assert (found.until > 60) == (why == "more")


def test_it_tells_which_arm_drifts():
    health = {"baseline": series(drift=0.29, drift_p=0.0001), "candidate": series(drift=0.01)}
    assert going_on(open_point(None, health=health), GATE).drifts == {"baseline": 0.29}


@pytest.mark.parametrize(
    ("drift", "p_value", "clear"),
    [(0.15, 0.001, True), (-0.15, 0.001, True), (0.15, 0.2, False), (0.01, 0.001, False)],
)
def test_a_drift_is_one_that_is_clear_and_large(drift, p_value, clear):
    assert series(drift=drift, drift_p=p_value).drifts is clear


def test_a_series_without_a_test_does_not_drift():
    assert not series().drifts


def test_health_flags_the_drifts_that_are_told():
    from orbax_bench_core.gate.health import health

    for times in ([1 + 0.02 * i for i in range(20)], [1 + 0.001 * i for i in range(20)]):
        found = health(times)
        assert found.drifts == any(flag.code == "drifts" for flag in found.flags)
