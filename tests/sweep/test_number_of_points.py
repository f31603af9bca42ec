"""Suites of more points than anybody meant."""

import pytest

from orbax_bench_core.config import SuiteError, parse_suite
from orbax_bench_core.sweep import expand

MANY = """
suite_name: s
execution: {{max_points: {most}}}
benchmarks:
- generator: save_restore
  options:
    chunk_byte_size: {values}
    save_concurrent_gb: {values}
    restore_concurrent_gb: {values}
"""


def test_a_sweep_of_more_points_than_a_suite_may_have_is_refused_with_the_numbers_at_once():
    suite = parse_suite(MANY.format(most=10_000, values=list(range(1, 1001))))
    with pytest.raises(SuiteError) as caught:
        expand(suite)
    assert str(caught.value) == (
        ":6: benchmarks[0].options: 1,000,000,000 combinations (1,000 chunk_byte_size x 1,000 "
        "save_concurrent_gb x 1,000 restore_concurrent_gb), and a suite may have 10,000; give "
        "fewer values, or raise execution.max_points"
    )


def test_a_suite_lifts_its_own_bound_no_further_than_any_may():
    with pytest.raises(SuiteError, match=r"execution\.max_points: expected less than or equal to"):
        parse_suite(MANY.format(most=100_001, values=[1, 2]))
