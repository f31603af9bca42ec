"""The exit code of a run."""

import pytest

from orbax_bench_core.analysis.summary import summarize
from orbax_bench_core.exit_codes import exit_code
from orbax_bench_core.records import ErrorInfo, repeats_of

ERROR = ErrorInfo(type="ValueError", message="no")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["passed", "passed"], 0),
        (["passed", "skipped"], 0),
        (["passed", "failed"], 1),
        (["failed"], 1),
        (["skipped"], 1),
        ([], 1),
    ],
)
def test_the_exit_code_says_whether_anything_failed_or_nothing_was_measured(
    make_record, make_point, statuses, code
):
    records = [
        make_record(
            make_point(options={"a": i}),
            status=one,
            times={"save": 1.0},
            error=None if one == "passed" else ERROR,
        )
        for i, one in enumerate(statuses)
    ]
    assert exit_code(summarize(repeats_of(records)).outcome) == code


def test_repeats_that_passed_without_a_sample_are_no_success(make_record):
    summary = summarize(repeats_of([make_record()]))
    assert exit_code(summary.outcome) == 1
    assert "without one sample" in (summary.points[0].flag or "")
