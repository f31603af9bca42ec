"""What is done while workers start: it ends before anything is measured."""

import pytest

pytestmark = pytest.mark.slow


def test_it_is_done_once_and_before_anything_is_measured(orchestrate):
    run, seen = orchestrate("behave"), []
    run.run(repeats=2, meanwhile=lambda: seen.append(len(run.watched)))
    assert seen == [0]
    assert run.record("behave", repeat=1).status == "passed"


def test_a_worker_that_was_starting_ends_with_an_interrupt(orchestrate):
    def interrupt():
        raise KeyboardInterrupt

    run = orchestrate("behave")
    with pytest.raises(KeyboardInterrupt):
        run.run(meanwhile=interrupt)
    assert not run.watched
