from orbax_bench_core.analysis.summary.aggregate import (
    RESIDENT,
    cache_flag,
    summarize,
    uncontrolled_flag,
)
from orbax_bench_core.config import Conditions
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import repeats_of

COLD, WARM = Conditions(cache="cold"), Conditions(cache="warm")


def test_a_cold_load_of_resident_pages_is_flagged():
    assert "up to 40%" in cache_flag(COLD, "load", [0.0, 0.4])


def test_a_warm_load_of_missing_pages_is_flagged():
    assert "only 30%" in cache_flag(WARM, "load", [1.0, 0.3])


def test_loads_as_they_claim_to_be_are_not():
    assert cache_flag(COLD, "load", [0.0, 0.05]) is None
    assert cache_flag(WARM, "load", [1.0, 0.95]) is None


def test_operations_that_load_nothing_are_not():
    assert cache_flag(COLD, "save", []) is None


def test_a_cold_point_that_nothing_made_cold_is_flagged():
    assert "had no effect" in uncontrolled_flag(COLD, [])
    assert uncontrolled_flag(COLD, ["load"]) is None
    assert uncontrolled_flag(WARM, []) is None


def test_defect_8_the_summary_carries_the_flag(make_record, make_point):
    point = make_point(conditions=COLD)
    samples = (Sample("load", 0, TIME, 1.0, "s"), Sample("load", 0, RESIDENT, 0.9, "ratio"))
    [operation] = summarize(repeats_of([make_record(point, samples=samples)])).operations
    assert "claims to be cold" in operation.flag
