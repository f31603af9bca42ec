"""Failures that every point shares end a run early; others never do."""

import pytest

from orbax_bench_core.execute import CommonFailure
from orbax_bench_core.execute.common_failure import CommonFailureCheck
from orbax_bench_core.records import ErrorInfo
from tests.support.repeats import repeat_over

NO_LIBRARY = ErrorInfo(type="ModuleNotFoundError", message="No module named 'lib'")
NO_SPACE = "[Errno 28] No space left on device: '/data/%s'"


@pytest.fixture
def points(make_point):
    """Points of one benchmark; of another with `benchmark`."""

    def make(count, **fields):
        return [make_point(options={"n": number}, **fields) for number in range(count)]

    return make


@pytest.fixture
def watch(make_record):
    """Lets points fail one after the other; returns what was said, and after how many."""

    def run(points, errors):
        shared = CommonFailureCheck(points)
        for number, (point, error) in enumerate(zip(points, errors, strict=False)):
            status = "passed" if error is None else "failed"
            if error is not None and error.type == "MeshDoesNotFit":
                status = "skipped"
            try:
                shared.look(
                    point, repeat_over({0: make_record(point, status=status, error=error)}, 1)
                )
            except CommonFailure as stop:
                return number + 1, str(stop)
        return None

    return run


def test_three_points_that_lack_a_library_are_enough(points, watch):
    said = (
        "the first 3 of 5 points failed for the same reason: ModuleNotFoundError: "
        "No module named 'lib'"
    )
    assert watch(points(5), [NO_LIBRARY] * 5) == (3, said)


def test_a_full_disk_is_one_reason_whatever_was_written(points, watch):
    errors = [ErrorInfo(type="OSError", message=NO_SPACE % number) for number in range(3)]
    assert watch(points(3), errors) == (
        3,
        "all 3 points failed for the same reason: No space left on device",
    )


@pytest.mark.parametrize("kind", ["UnmetNeed", "EnvironmentFailed"])
def test_needs_and_environments_are_such_reasons(points, watch, kind):
    assert watch(points(3), [ErrorInfo(type=kind, message="m")] * 3)[0] == 3


def test_once_something_works_nothing_is_given_up(points, watch):
    assert watch(points(6), [NO_LIBRARY, None, *[NO_LIBRARY] * 4]) is None


def test_a_failure_of_its_own_kind_says_nothing_of_others(points, watch):
    kaboom = ErrorInfo(type="RuntimeError", message="kaboom")
    assert watch(points(6), [kaboom] * 6) is None
    other = ErrorInfo(type="ModuleNotFoundError", message="No module named 'other'")
    assert watch(points(6), [NO_LIBRARY, other, *[NO_LIBRARY] * 4]) is None


def test_other_benchmarks_may_not_need_the_library(points, watch):
    mixed = [*points(3), *points(1, benchmark="my.other.Benchmark")]
    assert watch(mixed, [NO_LIBRARY] * 3) is None
    assert watch(mixed, [NO_LIBRARY] * 4)[0] == 4
