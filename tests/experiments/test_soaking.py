"""The end of a soak."""

import pytest

from orbax_bench_core.errors import UserError
from orbax_bench_core.experiments import SoakGoal
from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import ErrorInfo, repeats_of


@pytest.fixture
def make_repeats(make_record):
    """Makes repeats of 100 saves and half an hour each, by the process that made each of them."""

    def make(*workers, status="passed", operation="save"):
        samples = tuple(Sample(operation, save, TIME, 0.1, "s") for save in range(100))
        error = ErrorInfo(type="OSError", message="gone") if status == "failed" else None
        fields = {"samples": samples, "status": status, "error": error, "duration_s": 1800.0}
        return list(
            repeats_of(
                make_record(repeat=repeat, worker=worker, **fields)
                for repeat, worker in enumerate(workers)
            )
        )

    return make


@pytest.mark.parametrize(
    ("workers", "reached"), [("a", False), ("aa", True), ("ab", False), ("abb", True)]
)
def test_one_process_has_to_reach_it(make_repeats, workers, reached):
    repeats = make_repeats(*workers)
    assert SoakGoal(saves=200).reached(repeats) is reached
    assert SoakGoal(hours=1.0).reached(repeats) is reached


def test_a_repeat_that_failed_ends_it(make_repeats):
    assert SoakGoal(saves=200).reached(make_repeats("a", status="failed"))


def test_a_benchmark_without_a_save_is_refused(make_repeats):
    with pytest.raises(UserError, match="measures no save"):
        SoakGoal(saves=200).reached(make_repeats("a", operation="load"))
