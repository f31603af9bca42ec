"""Whose failure it was, by what each host shows, in the order in which they spoke."""

import pytest

from orbax_bench_core.execute.group import Cause, HostEvidence, first_failed_host
from orbax_bench_core.execute.liveness import Judgement, Liveness


def shows(liveness=Liveness.UNKNOWN, **found):
    return HostEvidence(judgement=Judgement(liveness=liveness, lasting_s=1, said=""), **found)


ABORTED = shows(
    ended=True,
    exit_code=-6,
    tail="Terminating process because the JAX distributed service detected fatal errors.",
)
REPORTED_LOSS = shows(reason="JaxRuntimeError: INTERNAL: Gloo AllReduce failed")
KILLED = shows(ended=True, exit_code=-9)
FROZEN = shows(Liveness.FROZEN)
RAISED = shows(reason="ValueError: no such key")
CRASHED = shows(ended=True, exit_code=-11)
EXITED = shows(ended=True, exit_code=3)
STALLED = shows(Liveness.STALLED)
WAITING = shows()


@pytest.mark.parametrize(
    ("evidence", "cause"),
    [
        (shows(lost=True, ended=True, exit_code=-9), Cause.HOST_LOST),
        (KILLED, Cause.KILLED),
        (shows(ended=True, exit_code=-15), Cause.KILLED),
        (FROZEN, Cause.FROZEN),
        (RAISED, Cause.OWN),
        (CRASHED, Cause.OWN),
        (EXITED, Cause.OWN),
        (shows(ended=True, exit_code=-6, tail="Check failed: n > 0"), Cause.OWN),
        (shows(ended=True), Cause.OWN),
        (STALLED, Cause.STALLED),
        (ABORTED, Cause.LOST_PEER),
        (REPORTED_LOSS, Cause.LOST_PEER),
        (shows(reason="DEADLINE_EXCEEDED: Barrier timed out."), Cause.LOST_PEER),
        (WAITING, Cause.NONE),
        (shows(Liveness.ALIVE), Cause.NONE),
    ],
)
def test_what_a_host_shows(evidence, cause):
    assert evidence.cause is cause


@pytest.mark.parametrize(
    ("spoke", "blamed"),
    [
        ([ABORTED, KILLED], 1),
        ([REPORTED_LOSS, KILLED], 1),
        ([ABORTED, FROZEN], 1),
        ([RAISED, FROZEN], 1),
        ([FROZEN, KILLED], 1),
        ([REPORTED_LOSS, RAISED], 1),
        ([REPORTED_LOSS, STALLED], 1),
        ([RAISED, STALLED], 0),
        ([CRASHED, RAISED], 0),
        ([RAISED, CRASHED], 0),
        ([ABORTED, WAITING], 0),
        ([WAITING, ABORTED, REPORTED_LOSS, KILLED], 3),
        ([WAITING, WAITING], None),
        ([], None),
    ],
)
def test_the_host_with_which_it_began_is_blamed_not_the_first_to_speak(spoke, blamed):
    assert first_failed_host(dict(enumerate(spoke))) == blamed
