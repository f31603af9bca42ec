"""What is recorded of a repeat whose warm-up did not pass."""

from orbax_bench_core.execute.attempt import WarmUpEnded
from orbax_bench_core.records import PEER_FAILED, ErrorInfo
from orbax_bench_core.worker import Done

ERROR = ErrorInfo(
    type="ValueError",
    message="kaboom",
    traceback='Traceback (most recent call last):\n  File "/h/my_bench.py", line 17, in test_fn\n',
)
FAILED = Done(status="failed", error=ERROR)
PASSED = Done(status="passed")


def test_the_authors_traceback_is_kept():
    (error,) = WarmUpEnded({0: FAILED}).errors(1).values()
    assert error.said == "ValueError: in a warm-up: kaboom (my_bench.py:17)"
    assert error.traceback == ERROR.traceback


def test_a_host_that_ended_for_the_same_reason_has_the_same_error_and_others_are_peers():
    errors = WarmUpEnded({0: PASSED, 1: FAILED, 2: FAILED}).errors(4)
    assert [errors[host].type for host in range(4)] == [
        PEER_FAILED,
        "ValueError",
        "ValueError",
        PEER_FAILED,
    ]
    assert errors[0].message == "ended because host 1 failed: in a warm-up: kaboom"
