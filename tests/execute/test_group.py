"""Groups of workers: how they end, who is waited for, and whose failure it was."""

import contextlib
import os
import queue
import signal
import threading

import pytest

from orbax_bench_core.execute import Retry
from orbax_bench_core.execute.causes import Cause, HostEvidence, first_failed_host
from orbax_bench_core.execute.group import WorkerGroup
from orbax_bench_core.execute.group_wait import GroupWait, HostFailed
from orbax_bench_core.execute.hosts import HostLost, WorkerDied
from orbax_bench_core.execute.liveness import Judgement, Liveness, Patience
from orbax_bench_core.execute.signs import Signs
from orbax_bench_core.interrupts import interrupted_when_told
from orbax_bench_core.records import ErrorInfo
from orbax_bench_core.worker import Done, WorkerSetup
from tests.support.processes import interrupts

HOSTS = 64


class Slow:
    """A worker that ends once all of its peers are asked to end as well."""

    def __init__(self, run, stopped):
        self._run = run
        self._stopped = stopped

    def dismiss(self):
        pass

    def stop(self):
        self._run.wait()
        self._stopped.append(self)


class Hosts:
    def __init__(self):
        self.stopped = []

    def launch(self, setups, **_):
        run = threading.Barrier(len(setups), timeout=60)
        return [Slow(run, self.stopped) for _ in setups]


def test_the_workers_of_many_hosts_are_stopped_at_the_same_time(tmp_path):
    setups = [
        WorkerSetup(root=str(tmp_path), x64=False, num_devices=1, process_id=host)
        for host in range(HOSTS)
    ]
    logs = [tmp_path / str(host) for host in range(HOSTS)]
    hosts = Hosts()
    group = WorkerGroup(hosts, setups, environment={}, python="", logs=logs, timeout_s=60)
    group.stop()
    assert len(hosts.stopped) == HOSTS
    group.stop()
    assert len(hosts.stopped) == HOSTS


QUICK = Patience(look_s=0.02, confirm_s=0.02, frozen_s=0.08, stalled_s=0.04, settle_s=0.1)
PASSED = Done(status="passed").model_dump_json().encode()
RUNS, WAITS = Signs(pid=7, state="R", ticks=1), Signs(pid=8, state="S", ticks=1)
STOPPED = Signs(pid=9, hostname="h9", state="T", ticks=1)
ASLEEP = Signs(pid=5, state="D", ticks=1, wchan="nfs_wait_bit_killable")
WAS_KILLED, HAS_ABORTED = Signs(exit_code=-9), Signs(exit_code=-6)
LOST = "the JAX distributed service detected fatal errors"


class Scripted:
    """A worker with signs that a test sets."""

    def __init__(self, signs, tail=""):
        self.now = signs
        self.tail = tail

    def signs(self):
        return self.now

    def death(self):
        return WorkerDied(f"exit code {self.now.exit_code}", self.tail)

    def stacks(self):
        return f"stacks of {self.now.pid}"


def failed(kind, message):
    return Done(status="failed", error=ErrorInfo(type=kind, message=message))


def keep(*workers, said=(), timeout_s=60.0, patience=QUICK):
    """Waits for the workers, which have said these lines."""
    inbox = queue.SimpleQueue()
    for line in said:
        inbox.put(line)
    return GroupWait(workers, inbox, timeout_s=timeout_s, patience=patience).keep()


def failure(*workers, **given):
    with pytest.raises(HostFailed) as caught:
        keep(*workers, **given)
    return caught.value


def test_an_interrupt_that_is_lost_while_it_looks_ends_the_wait():
    class Loses(Scripted):
        def signs(self):
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            return super().signs()

    with interrupts(), pytest.raises(KeyboardInterrupt), interrupted_when_told():
        keep(Loses(RUNS))


def test_a_frozen_worker_ends_the_wait_and_is_named_with_host_and_process():
    found = failure(Scripted(WAITS), Scripted(STOPPED))
    assert (found.host, found.kind, found.tail) == (1, "Frozen", "stacks of 9")
    assert found.message.startswith("host 1 (process 9 on h9) has been stopped (state T) for")


def test_a_worker_that_is_let_go_in_time_is_waited_for():
    worker, inbox = Scripted(STOPPED), queue.SimpleQueue()

    def go_on():
        worker.now = RUNS
        inbox.put((0, PASSED))

    timer = threading.Timer(0.05, go_on)
    timer.start()
    assert list(GroupWait([worker], inbox, timeout_s=60, patience=QUICK).keep()) == [0]
    timer.join()


def test_a_host_without_contact_is_named_and_nothing_is_said_of_a_crash():
    class Unreachable(Scripted):
        def death(self):
            return HostLost("no contact with host 1 (h): it was silent for 8 s", "")

    found = failure(
        Scripted(HAS_ABORTED, LOST), Unreachable(Signs(ended=True)), said=[(0, b""), (1, b"")]
    )
    assert (found.host, found.kind, found.tail) == (1, "HostLost", "")
    assert found.message == "no contact with host 1 (h): it was silent for 8 s"


def test_a_report_of_a_lost_peer_waits_for_the_one_that_was_lost():
    lost = failed("JaxRuntimeError", "Gloo AllReduce failed")
    found = failure(Scripted(WAITS), Scripted(STOPPED), said=[(0, lost.model_dump_json().encode())])
    assert (found.host, found.kind) == (1, "Frozen")


def test_of_two_reports_that_of_an_exception_stands_and_that_of_a_lost_peer_does_not():
    lost = failed("JaxRuntimeError", "Gloo AllReduce failed")
    own = failed("ValueError", "no")
    said = [(host, one.model_dump_json().encode()) for host, one in enumerate([lost, own])]
    assert keep(Scripted(RUNS), Scripted(RUNS), said=said) == {1: own}


def test_where_all_have_lost_a_peer_nobody_is_made_up():
    found = failure(
        Scripted(HAS_ABORTED, LOST), Scripted(HAS_ABORTED, LOST), said=[(1, b""), (0, b"")]
    )
    assert (found.host, found.kind) == (1, "WorkerDied")
    assert "no host shows why" in found.message


def test_a_timeout_of_hosts_whose_signs_do_not_tell_is_that_of_all_of_them():
    found = failure(Scripted(WAITS), Scripted(RUNS), timeout_s=0.1)
    assert found.kind == "Timeout"
    assert "hosts 0, 1 wait, and their signs do not tell which one failed" in found.message
    assert {host: error.traceback for host, error in found.others.items()} == {
        0: "stacks of 8",
        1: "stacks of 7",
    }


@pytest.mark.slow
def test_uninterruptible_sleep_ends_nothing_early_and_is_said_at_the_timeout():
    found = failure(Scripted(WAITS), Scripted(ASLEEP), timeout_s=0.2)
    assert (found.host, found.kind, list(found.others)) == (1, "Timeout", [1])
    assert "after timeout_s = 0.2 seconds: host 1 (process 5) has been in" in found.message
    assert "nfs_wait_bit_killable" in found.message


@pytest.mark.slow
@pytest.mark.parametrize("timeout_s", [60.0, 0.0], ids=["in time", "just before the timeout"])
def test_a_process_that_ended_while_its_pipe_is_held_open_is_noticed(timeout_s):
    found = failure(Scripted(RUNS), Scripted(WAS_KILLED), timeout_s=timeout_s)
    assert (found.host, found.kind) == (1, "WorkerDied")


PATIENCE = Patience(look_s=0.1, confirm_s=0.1, frozen_s=0.5, settle_s=2.0)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [0, 1])
def test_a_process_that_is_stopped_is_recorded_as_frozen_and_its_peer_as_a_peer(
    orchestrate, frozen
):
    run = orchestrate("freeze", "behave", processes=2, devices=2, on_host=frozen)
    run.run(patience=PATIENCE)
    errors = {host: record.error for host, record in run.repeat("freeze").items()}
    assert (errors[frozen].type, errors[1 - frozen].type) == ("Frozen", "PeerFailed")
    assert "stopped (state T)" in errors[frozen].message
    assert f"host {frozen} failed" in errors[1 - frozen].message
    healthy = run.repeat("behave")
    assert [healthy[host].status for host in (0, 1)] == ["passed", "passed"]


@pytest.mark.slow
@pytest.mark.parametrize("act", ["crowd_out", "outtalk"])
def test_a_process_that_was_killed_is_blamed_although_its_peer_ended_first(orchestrate, act):
    run = orchestrate(act, processes=2, devices=2, on_host=1)
    run.run(patience=PATIENCE)
    errors = {host: record.error for host, record in run.repeat(act).items()}
    assert [errors[host].type for host in (0, 1)] == ["PeerFailed", "WorkerDied"]
    assert "SIGKILL" in errors[1].message


@pytest.mark.slow
def test_the_retry_of_a_frozen_host_is_shown_and_kept(orchestrate):
    run = orchestrate("freeze", processes=2, devices=2, on_host=1, only_once=True)
    run.run(patience=PATIENCE, retries=1)
    records = run.repeat("freeze")
    assert [records[host].status for host in (0, 1)] == ["passed", "passed"]
    attempts = [records[host].attempts for host in (0, 1)]
    assert [[one.error.type for one in tries] for tries in attempts] == [["PeerFailed"], ["Frozen"]]
    (retry,) = (event for event in run.watched if isinstance(event, Retry))
    assert (retry.index, retry.left) == (0, 1)
    assert "Frozen: host 1 (process" in retry.reason


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
