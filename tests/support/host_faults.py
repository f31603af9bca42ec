"""Faults of hosts, each tried once on three of them: what is named, what ends, and what is left.

Every fault is a function of `FAULTS`. It strikes at a moment that the number of the trial draws,
and raises `NotHeld` where something else was seen than should be.
"""

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil

from tests.support.cluster import Hosts
from tests.support.namespaces import Lab
from tests.support.processes import FAKE_CLI, REAL_CLI

SIZE: Final = 3
HOST_WAIT_S: Final = 5.0
NAMED_S: Final = 10.0
"""Seconds in which the cause of a failure is named."""
GONE_S: Final = 5.0
"""Seconds in which workers are gone that nobody wants any more."""
GRACE_S: Final = 30.0
"""Seconds between the notice of a preemption and the end of a machine, as Kubernetes gives them."""

_LEAVES_S: Final = 10.0
"""Seconds that a command may take to write its report and to end, beside what it waits for."""
_COMES_BACK_S: Final = 60.0
_REPEATS: Final = 4
_TOKEN: Final = "right" * 8
_SCRIPTED: Final = """
suite_name: faults
num_repeats: {repeats}
execution: {{retries: 1, warmups: 0, timeout_s: 60}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [8]}}}}}}
benchmarks:
  - {{generator: tests.support.scripted.Scripted, options: {{lasts_s: 0.7}}}}
"""
_REAL: Final = """
suite_name: faults
num_repeats: {repeats}
execution: {{retries: 1, warmups: 0, timeout_s: 60}}
mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: 3}}}}
checkpoint_config: {{spec: {{w: {{dtype: float32, shape: [768, 256], sharding: [x, null]}}}}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""
_TELLS_OF_PEER: Final = re.compile("Gloo .* by peer|coordination service")
_SILENT: Final = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    while connection.recv(100):
        pass
"""


class NotHeld(AssertionError):
    """Something else was seen than should be."""


class Trial:
    """One run of a suite on the hosts of a lab, to which something is done.

    Attributes:
        lab: The hosts.
        hosts: The commands on them.
        folder: What all hosts share.
        draw: Draws the moment.
        number: Which trial.
        seen: What was seen so far, for people.
    """

    def __init__(
        self,
        lab: Lab,
        folder: Path,
        *,
        number: int,
        real: bool,
        host_wait_s: float = HOST_WAIT_S,
    ) -> None:
        """Describes a trial; nothing runs yet.

        Args:
            lab: Three hosts on which nothing runs.
            folder: An empty folder.
            number: Seed of what is drawn, and which host is struck.
            real: Whether workers are real, with JAX; otherwise they follow a script.
            host_wait_s: Seconds for which a lost host is waited for.
        """
        self.lab = lab
        self.folder = folder
        self.number = number
        self.draw = random.Random(number)
        self.seen: list[str] = []
        self._suite = folder / "suite.yaml"
        self._text = _REAL if real else _SCRIPTED
        self.has(_REPEATS)
        self.run = folder / "out"
        words = ("run", self._suite, "-o", self.run, "--no-limits", "--no-lock")
        self.hosts = Hosts(
            folder,
            *(*words, "--host-wait", f"{host_wait_s:g}"),
            size=SIZE,
            cli=REAL_CLI if real else FAKE_CLI,
            lab=lab,
        )

    @property
    def struck(self) -> int:
        """A host other than host 0; trials in a row take turns."""
        return 1 + self.number % (SIZE - 1)

    @property
    def any_host(self) -> int:
        """A host, which may be host 0."""
        return self.number % SIZE

    def has(self, repeats: int) -> None:
        """Makes the suite as long as that; real repeats take less time each, and there are more."""
        self.repeats = 3 * repeats if self._text is _REAL else repeats
        self._suite.write_text(self._text.format(repeats=self.repeats))

    def begin(self) -> list[subprocess.Popen[str]]:
        """Starts all hosts, and returns at some moment after the first repeat."""
        started = self.hosts.start_all()
        self.wait_until_under_way()
        return started

    def wait_until_under_way(self) -> None:
        """Returns at some moment after the first repeat, while the run goes on."""
        self.hosts.wait_for(lambda: len(self.records(0)) == SIZE)
        time.sleep(self.draw.uniform(0, 0.7))

    def expect(self, held: object, what: str) -> None:
        """Says what was seen where something does not hold.

        Raises:
            NotHeld: It does not.
        """
        if not held:
            said = "\n".join(f"host {rank}: {self.hosts.said(rank)}" for rank in range(SIZE))
            raise NotHeld(f"{said}\n{what}")

    def named(self, rank: int, *texts: str, since: float) -> None:
        """Waits until a host has said something, which takes at most `NAMED_S`."""
        while not all(text in self.hosts.said(rank) for text in texts):
            late = time.monotonic() - since > NAMED_S
            self.expect(not late, f"host {rank} did not say {texts} within {NAMED_S:g} s")
            time.sleep(0.02)
        self.seen.append(f"named after {time.monotonic() - since:.1f} s")

    def codes(
        self, processes: list[subprocess.Popen[str]], expected: list[int], within_s: float = 90
    ) -> None:
        """Waits until commands have ended, as they should."""
        began = time.monotonic()
        found: list[int | str] = []
        for process in processes:
            try:
                left = max(0.0, within_s - (time.monotonic() - began))
                found.append(process.wait(timeout=left))
            except subprocess.TimeoutExpired:
                found.append(f"none after {within_s:g} s")
        self.expect(found == expected, f"exit codes are {found}, not {expected}")

    def ends_incomplete(self, head: subprocess.Popen[str], named_at: float) -> None:
        """Waits until the run has given a host up, and looks at what it leaves."""
        self.codes([head], [1], HOST_WAIT_S + _LEAVES_S)
        waited = time.monotonic() - named_at
        self.seen.append(f"ended {waited:.1f} s later")
        self.expect(waited > HOST_WAIT_S - 1, f"it waited only {waited:.1f} s for the host")
        text = f"did not come back within {HOST_WAIT_S:g} s"
        self.expect(text in self.hosts.said(0), f"process 0 did not say: {text}")
        self.expect(self.status == "incomplete", f"the run is {self.status}")

    def resumes(self) -> None:
        """Starts the same commands again, which finish what is missing and nothing else."""
        before = self.final()
        self.codes(self.hosts.start_all(), [0] * SIZE)
        self.is_complete(None)
        changed = [path.name for path, text in before.items() if path.read_text() != text]
        self.expect(not changed, f"final records were written again: {changed}")

    def is_complete(self, attempts: dict[int, str] | None) -> None:
        """Looks at the records of a run that has ended well.

        Args:
            attempts: What may have been tried in vain in one repeat, by host; empty where nothing
                may have been, None where that does not matter.
        """
        self.expect(self.status == "complete", f"the run is {self.status}")
        tried = []
        for repeat in range(self.repeats):
            found = self.records(repeat)
            self.expect(sorted(found) == list(range(SIZE)), f"repeat {repeat} lacks records")
            passed = all(record["status"] == "passed" for record in found.values())
            self.expect(passed, f"repeat {repeat} did not pass")
            if any(record["attempts"] for record in found.values()):
                tried.append(
                    {
                        host: " ".join(one["error"]["type"] for one in record["attempts"])
                        for host, record in found.items()
                    }
                )
        if attempts is not None:
            # The fault may have come after all had passed, and before all had said so.
            right = not tried or tried == [attempts]
            self.expect(right, f"attempts are {tried}, not {attempts}")

    def is_honest(self) -> None:
        """Looks at the records of a run that has not ended well: what failed says so.

        A worker may hear of its peer's end before it is ended itself, and then records what JAX or
        Gloo say of it; where process 0 is gone, nobody else could.
        """
        for repeat in range(self.repeats):
            for host, record in self.records(repeat).items():
                status, error = record["status"], record["error"] or {"type": None, "message": ""}
                honest = (status, error["type"]) in (
                    ("passed", None),
                    ("failed", "HostLost"),
                    ("failed", "PeerFailed"),
                ) or (status == "failed" and _TELLS_OF_PEER.search(error["message"]))
                self.expect(honest, f"repeat {repeat}, host {host}: {status}, {error}")

    def nothing_is_left(self, host: int | None = None, within_s: float = GONE_S) -> None:
        """Waits until nothing runs on a host, or on any."""
        deadline = time.monotonic() + within_s
        while left := self.lab.processes(host):
            late = time.monotonic() > deadline
            self.expect(not late, f"these are left after {within_s:g} s: {_shown(left)}")
            time.sleep(0.05)

    def worker(self, host: int) -> psutil.Process:
        """Returns the worker that runs on a host."""
        found = [one for one in self.lab.processes(host) if "--setup" in _words(one)]
        self.expect(len(found) == 1, f"host {host} has the workers {_shown(found)}")
        return found[0]

    def records(self, repeat: int) -> dict[int, dict[str, Any]]:
        """Returns the records of one repeat by host."""
        paths = self.run.glob(f"records/*/repeat_{repeat}/host_*.json")
        found = [json.loads(path.read_text()) for path in paths]
        return {record["host"]: record for record in found}

    def final(self) -> dict[Path, str]:
        """Returns the records that must not change any more."""
        found = {path: path.read_text() for path in self.run.glob("records/*/*/host_*.json")}
        whole = {path.parent for path in found} - {
            path.parent for path, text in found.items() if json.loads(text)["status"] != "passed"
        }
        return {
            path: text
            for path, text in found.items()
            if path.parent in whole and len(list(path.parent.glob("host_*.json"))) == SIZE
        }

    @property
    def status(self) -> str:
        """What the run directory says of the run."""
        return str(json.loads((self.run / "run.json").read_text())["status"])


def worker_killed(trial: Trial) -> None:
    """A worker dies by SIGKILL."""
    host = trial.any_host
    started = trial.begin()
    trial.worker(host).kill()
    trial.named(0, "is tried again: ", "WorkerDied", since=time.monotonic())
    trial.codes(started, [0, 0, 0])
    trial.is_complete(_blames(host, "WorkerDied"))


def agent_killed(trial: Trial) -> None:
    """The agent of a host dies by SIGKILL, and the same command is started there again."""
    host = trial.struck
    started = trial.begin()
    started[host].kill()
    trial.named(0, f"no contact with host {host} (ob{host})", since=time.monotonic())
    trial.nothing_is_left(host)
    time.sleep(trial.draw.uniform(0, 2))
    started[host].wait()
    started[host] = trial.hosts.start(host)
    trial.codes(started, [0, 0, 0])
    trial.is_complete(_blames(host, "HostLost"))


def cut_briefly(trial: Trial) -> None:
    """The network of a host is gone for four seconds, which is no failure at all."""
    host = trial.any_host
    started = trial.begin()
    trial.lab.cut(host)
    time.sleep(4)
    last = trial.records(trial.repeats - 1)
    trial.expect(len(last) < SIZE, "the run was over before the cable was mended")
    trial.lab.mend(host)
    trial.codes(started, [0, 0, 0])
    trial.is_complete({})
    told = [line for rank in range(SIZE) for line in trial.hosts.said(rank).splitlines()]
    trial.expect(not [line for line in told if "no contact" in line], "contact was lost")


def cut_for_good(trial: Trial) -> None:
    """The network of a host is gone for as long as the run lasts."""
    host = trial.struck
    started = trial.begin()
    trial.lab.cut(host)
    cut_at = time.monotonic()
    trial.named(0, f"no contact with host {host} (ob{host}): it was silent for 8 s", since=cut_at)
    trial.ends_incomplete(started[0], time.monotonic())
    trial.codes(started[1:], [75 if rank == host else 1 for rank in (1, 2)], NAMED_S)
    trial.nothing_is_left()
    trial.is_honest()
    trial.lab.mend(host)
    trial.resumes()


def frozen(trial: Trial) -> None:
    """All of a host is stopped, and goes on when the run is over."""
    host = trial.struck
    started = trial.begin()
    trial.lab.signal(host, signal.SIGSTOP)
    cause = f"no contact with host {host} (ob{host}): it was silent for 8 s"
    trial.named(0, cause, since=time.monotonic())
    trial.ends_incomplete(started[0], time.monotonic())
    before = trial.final()
    trial.lab.signal(host, signal.SIGCONT)
    trial.codes(started[1:], [75 if rank == host else 1 for rank in (1, 2)], NAMED_S)
    trial.nothing_is_left()
    trial.is_honest()
    trial.expect(before == trial.final(), "the host that went on has changed final records")
    trial.resumes()


def slow_link(trial: Trial) -> None:
    """The network of a host lets 256 kbit/s through, which is no failure."""
    host = trial.any_host
    trial.lab.slow(host, kbit_per_s=256)
    trial.codes(trial.hosts.start_all(), [0, 0, 0])
    trial.is_complete({})
    sent = trial.lab.sent_slowly(host)
    trial.seen.append(f"{sent} bytes sent slowly")
    trial.expect(sent > 1000, f"only {sent} bytes were sent over the slow link")


def head_killed(trial: Trial) -> None:
    """Process 0 dies by SIGKILL."""
    started = trial.begin()
    started[0].kill()
    killed_at = time.monotonic()
    trial.codes(started, [-signal.SIGKILL, 75, 75], GONE_S)
    for rank in (1, 2):
        trial.named(rank, "no contact with process 0", since=killed_at)
    trial.nothing_is_left(within_s=GONE_S - (time.monotonic() - killed_at))
    trial.is_honest()
    trial.resumes()


def wrong_token(trial: Trial) -> None:
    """One host has another token than the others."""
    host = trial.struck
    started = {
        rank: trial.hosts.start(rank, ORBAX_BENCH_TOKEN="wrong" * 8 if rank == host else _TOKEN)
        for rank in range(SIZE)
    }
    trial.hosts.wait_until_said(0, "waiting for")
    began = time.monotonic()
    trial.named(0, f"refused an agent from {trial.lab.address(host)}: wrong token", since=began)
    trial.named(host, "refused: wrong token", since=began)
    trial.codes([started[host]], [2], 60)
    started[host] = trial.hosts.start(host, ORBAX_BENCH_TOKEN=_TOKEN)
    trial.codes([started[rank] for rank in range(SIZE)], [0, 0, 0])
    trial.is_complete({})
    written = [path for path in trial.folder.rglob("*") if path.is_file()]
    leaked = [path for path in written if _TOKEN.encode() in path.read_bytes()]
    trial.expect(not leaked, f"the token is in {leaked}")


def silent_connection(trial: Trial) -> None:
    """Somebody connects to process 0 during a run, and says nothing."""
    host = trial.any_host
    trial.has(3 * _REPEATS)
    started = trial.begin()
    address, port = trial.hosts.address.split(":")
    words = [*trial.lab.inside(host), sys.executable, "-c", _SILENT, address, port]
    stranger = subprocess.Popen(words)
    cause = f"refused an agent from {trial.lab.address(host)}: said nothing in time"
    trial.named(0, cause, since=time.monotonic())
    trial.codes([stranger, *started], [0, 0, 0, 0])
    trial.is_complete({})


def version_mismatch(trial: Trial) -> None:
    """One host has another release of JAX than the others."""
    host = trial.struck
    other = trial.folder / "other" / "jax-0.0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.0.1\n")
    started = {rank: trial.hosts.start(rank) for rank in range(SIZE) if rank != host}
    trial.hosts.wait_until_said(0, "waiting for")
    mismatched = trial.hosts.start(host, PYTHONPATH=str(other.parent))
    _refused(trial, mismatched, "jax 0.0.1 where process 0 has")
    started[host] = trial.hosts.start(host)
    trial.codes([started[rank] for rank in range(SIZE)], [0, 0, 0])
    trial.is_complete({})


def folder_not_shared(trial: Trial) -> None:
    """The run directory of one host is another folder under the same path."""
    host = trial.struck
    elsewhere = trial.folder / "elsewhere"
    elsewhere.mkdir()
    trial.run.mkdir()
    token = {"ORBAX_BENCH_TOKEN": _TOKEN} if trial.number % 2 else {}
    started = {rank: trial.hosts.start(rank, **token) for rank in range(SIZE) if rank != host}
    trial.hosts.wait_until_said(0, "waiting for")
    alone = trial.hosts.start(host, {trial.run: elsewhere}, **token)
    _refused(trial, alone, "is not the run directory" if token else "its run directory is not")
    started[host] = trial.hosts.start(host, **token)
    trial.codes([started[rank] for rank in range(SIZE)], [0, 0, 0])
    trial.is_complete({})
    shutil.rmtree(elsewhere)


def preempted(trial: Trial) -> None:
    """A host is told by SIGTERM that its machine will be taken away."""
    host = trial.any_host
    started = trial.begin()
    started[host].send_signal(signal.SIGTERM)
    told_at = time.monotonic()
    if host:
        cause = f"(ob{host}): it was told to end (interrupted, or preempted)"
        trial.named(0, cause, since=told_at)
        trial.codes([started[host]], [130], GRACE_S)
        trial.seen.append(f"gone {time.monotonic() - told_at:.1f} s after the notice")
        trial.nothing_is_left(host, 0.5)
        trial.ends_incomplete(started[0], told_at)
        trial.codes(started, [130 if rank == host else 1 for rank in range(SIZE)])
    else:
        trial.codes(started, [130, 130, 130], GRACE_S)
        trial.seen.append(f"gone {time.monotonic() - told_at:.1f} s after the notice")
        trial.named(0, "interrupted", since=told_at)
    trial.nothing_is_left()
    trial.is_honest()
    trial.resumes()


FAULTS: Final[dict[str, Callable[[Trial], None]]] = {
    fault.__name__: fault
    for fault in (
        worker_killed,
        agent_killed,
        cut_briefly,
        cut_for_good,
        frozen,
        slow_link,
        head_killed,
        wrong_token,
        silent_connection,
        version_mismatch,
        folder_not_shared,
        preempted,
    )
}
"""Faults of hosts and of what is between them, by name."""


def strike(fault: str, lab: Lab, folder: Path, *, number: int = 0, real: bool = False) -> str:
    """Makes one trial of one fault, and leaves nothing running.

    Args:
        fault: Which of `FAULTS`.
        lab: Three hosts on which nothing runs.
        folder: An empty folder.
        number: Which trial.
        real: Whether workers are real.

    Returns:
        What was seen.

    Raises:
        NotHeld: Something else was seen than should be.
    """
    # On a busy machine a command takes more than 5 seconds to start.
    host_wait_s = _COMES_BACK_S if fault == agent_killed.__name__ else HOST_WAIT_S
    trial = Trial(lab, folder, number=number, real=real, host_wait_s=host_wait_s)
    with trial.hosts:
        FAULTS[fault](trial)
        trial.nothing_is_left()
    token = trial.run / "cluster"
    trial.expect(not token.exists(), f"{token} is left")
    return ", ".join(trial.seen) or "no failure"


def _refused(trial: Trial, agent: subprocess.Popen[str], why: str) -> None:
    """Waits until an agent was refused, with the same reason on both sides."""
    trial.hosts.wait_until_said(trial.struck, "host ")  # it has started
    began = time.monotonic()
    trial.named(0, f"refused an agent from {trial.lab.address(trial.struck)}", why, since=began)
    trial.codes([agent], [2], 60)
    trial.named(trial.struck, "cannot join process 0", why, since=time.monotonic())


def _blames(host: int, kind: str) -> dict[int, str]:
    return {one: kind if one == host else "PeerFailed" for one in range(SIZE)}


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _shown(processes: list[psutil.Process]) -> list[str]:
    return [f"{one.pid} {' '.join(_words(one))[-200:]}" for one in processes]
