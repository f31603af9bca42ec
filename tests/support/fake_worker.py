"""A worker without JAX: it speaks the protocol, and does what a point's options say.

It is ready in a third of a second, and the seconds that it reports are known in advance, so that
orchestrator, pool, pairs and resuming are tested on it. Its records are real.
"""

import argparse
import datetime
import errno
import faulthandler
import itertools
import os
import platform
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pydantic

from orbax_bench_core.authoring import Killed
from orbax_bench_core.config import PER_ARM
from orbax_bench_core.leases import LeaseLost
from orbax_bench_core.measure import PEERS_NOTICE, RSS, STEPS_LOST, TIME, Sample
from orbax_bench_core.provenance import host_provenance, worker_id
from orbax_bench_core.records import AlreadyRecorded, ErrorInfo, RunDirectory, State
from orbax_bench_core.sweep import Pair, host_memory_of
from orbax_bench_core.worker import (
    STACKS_SIGNAL,
    Done,
    Measured,
    Ready,
    Task,
    Unrecorded,
    WorkerSetup,
    die_with_parent,
    leave,
)
from tests.support.scripted import ScriptedOptions

MODULE = "tests.support.fake_worker"
NOISE = 0.002
"""Standard deviation of the seconds that are reported, as a share of them."""

if "MACHINE" in os.environ:  # this process says that it runs on another one
    platform.node = socket.gethostname = lambda: os.environ["MACHINE"]

OUTLIVES = "OUTLIVE_PARENT" in os.environ
"""Whether an orphan goes on, as where the kernel cannot end it and no pipe tells it anything."""


class Unfinished(Exception):
    """The repeat ends here.

    Attributes:
        kind: Type of the error in the record.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class FakeWorker:
    """Answers tasks; events go to a file descriptor."""

    def __init__(self, setup: WorkerSetup, events: int) -> None:
        self._setup = setup
        self._events = events
        self._tasks = 0
        self._burden = 1.0
        self._run = RunDirectory(setup.root)
        self._info = self._run.read_info() if self._run.exists() else None
        pinned = os.environ.get("JAX_NUM_CPU_DEVICES")
        self._num_devices = int(pinned or setup.num_devices) * setup.num_processes
        devices = {"platform": "cpu", "kind": "cpu", "count": self._num_devices}
        self._provenance = {**host_provenance(), "devices": devices}
        self._emit(
            Ready(
                platform="cpu",
                device_count=self._num_devices,
                fixed=pinned is not None,
                provenance=self._provenance,
                worker=worker_id(),
                processes=setup.num_processes,
                host_memory=host_memory_of(os.environ),
                x64=setup.x64,
                environment=setup.environment,
                interpreter=sys.executable,
                interpreter_asked=setup.interpreter,
            )
        )

    def perform(self, task: Task) -> None:
        self._tasks += 1
        self._samples: list[Sample] = []
        started_at, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        status, error = "passed", None
        try:
            self._follow(task, ScriptedOptions(**task.measured.options))
        except Unfinished as end:
            status = "skipped" if end.kind == "MeshDoesNotFit" else "failed"
            error = ErrorInfo(type=end.kind, message=str(end))
        record = task.record(
            status=status,
            started_at=started_at,
            duration_s=time.monotonic() - clock,
            samples=tuple(self._samples),
            notes={"process": [str(os.getpid())]},
            error=error,
            state=State(num_bytes=128, digest={"w": "0" * 32}, verified="saved"),
            provenance=task.provenance(self._provenance, self._setup.root, None),
            worker=worker_id(),
        )
        if not (task.warmup and status == "skipped"):
            try:
                self._run.write_record(record, fence=task.fence, replaces=task.replaces)
            except LeaseLost:
                leave()
            except AlreadyRecorded:
                pass
        if status == "passed" and self._dies_now(task, "die_passed"):
            os.kill(os.getpid(), signal.SIGKILL)
        self._emit(Done(status=record.status, error=record.error))

    def _follow(self, task: Task, script: ScriptedOptions) -> None:
        needed = task.measured.num_devices or 1
        if needed > self._num_devices:
            there = f"there are {self._num_devices}"
            raise Unfinished("MeshDoesNotFit", f"the mesh needs {needed} devices; {there}")
        if script.act == "skip":
            raise Unfinished("MeshDoesNotFit", "skipped on purpose")
        if script.act == "need":
            raise Unfinished("UnmetNeed", "this needs a machine of another kind")
        if task.repeat >= script.fails_from and not task.warmup:
            raise Unfinished("OSError", "the storage is gone")
        data = self._run.data_path(task.point, task.repeat, warmup=task.warmup, arm=task.arm)
        data.mkdir(parents=True, exist_ok=True)
        (data / f"saved_by_{task.host}").write_text("")
        if task.drill is not None:
            self._drill(task, task.drill.killed, script, data / "saved")
            return
        self._measure("save", float(str(script.save_s)) * self._burden, task)
        self._burden = script.burden
        self._meet("saved", task)
        if script.act not in ("lag", "doze"):
            time.sleep(script.lasts_s)
        if self._acts(task, script):
            self._act(task, script)
        elif script.on_host is not None and not task.warmup:
            self._lose_peer(script)
        self._meet("together", task)
        self._measure("load", script.load_s, task)
        if self._dies_now(task, "die_last"):
            while len(self._run.read_repeat(task.point, task.repeat).records) < task.num_hosts - 1:
                time.sleep(0.005)
            os.kill(os.getpid(), signal.SIGKILL)
        if script.act == "die_passed" and script.on_host != task.host and not task.attempts:
            signal.pause()

    def _dies_now(self, task: Task, act: str) -> bool:
        script = ScriptedOptions(**task.measured.options)
        return script.act == act and self._acts(task, script)

    def _drill(
        self, task: Task, killed: Killed | None, script: ScriptedOptions, saved: Path
    ) -> None:
        """Trains until it is killed, or goes on from the last save."""
        if killed is None:
            os.write(self._events, b"7\n")  # as a library that prints a number has done
            for step in range(1, script.trains + 1):
                if step % script.save_interval_steps == 0:
                    self._save(str(step), saved)
                self._emit(Measured(samples=(Sample("step", step - 1, TIME, 0.001, "s"),)))
                time.sleep(0.002)
            raise Unfinished("NotKilled", "it came to its end before it was killed")
        if self._acts(task, script):
            self._act(task, script)
        seconds = {"notice": killed.notice_s, "start": killed.start_s}
        seconds |= {"restore": script.load_s, "first_step": script.load_s}
        seconds["recovery"] = sum(seconds.values())
        self._samples += [Sample(name, 0, TIME, value, "s") for name, value in seconds.items()]
        lost = max(0, killed.steps - int(saved.read_text()))
        self._samples.append(Sample("recovery", 0, STEPS_LOST.name, lost, STEPS_LOST.unit))
        if killed.peers_s is not None:
            value = killed.peers_s
            self._samples.append(Sample("recovery", 0, PEERS_NOTICE.name, value, "s"))

    @staticmethod
    def _save(text: str, saved: Path) -> None:
        """Commits as Orbax does: a kill in between leaves the save before."""
        unfinished = saved.with_name(f"unfinished_{os.getpid()}")
        unfinished.write_text(text)
        unfinished.replace(saved)

    def _acts(self, task: Task, script: ScriptedOptions) -> bool:
        """Says whether it happens here and now; a mark in the run directory outlives this."""
        here = script.on_host is None or script.on_host == task.host
        if not here or task.warmup != script.in_warmup:
            return False
        if script.act_at and not self._is_among(task, script.act_at):
            return False
        if script.first_attempts and task.attempts:
            return False
        mark = self._run.root / f"happened_{task.point.id}"
        if script.only_once and mark.exists():
            return False
        mark.write_text("")
        return True

    def _act(self, task: Task, script: ScriptedOptions) -> None:
        match script.act:
            case "raise":
                raise Unfinished("ValueError", "raised on purpose")
            case "need_late":
                raise Unfinished("UnmetNeed", "this needed something after all")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "doze":
                wake = f"sleep {script.lasts_s}; kill -CONT {os.getpid()}"
                subprocess.Popen(["sh", "-c", wake])
                os.kill(os.getpid(), signal.SIGSTOP)
            case "crowd_out" | "outtalk":
                time.sleep(0.5)
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                time.sleep(600)
            case "lag":
                time.sleep(script.lasts_s)
            case "unrecorded" | "unwell":
                number = errno.ENOSPC if script.act == "unrecorded" else errno.EIO
                said = f"cannot write the record: {os.strerror(number)}"
                self._emit(Unrecorded(reason=said, number=number))
                signal.pause()
            case "behave" | "die_last" | "die_passed":
                pass
            case unknown:
                raise Unfinished("ScriptError", f"no act is called {unknown!r}")

    def _lose_peer(self, script: ScriptedOptions) -> None:
        """Ends as JAX ends a process whose peer is gone."""
        if script.act == "crowd_out":
            print("the JAX distributed service detected fatal errors", file=sys.stderr, flush=True)
            os.abort()
        if script.act == "outtalk":
            raise Unfinished("JaxRuntimeError", "Gloo AllReduce failed: Connection closed by peer")

    def _measure(self, operation: str, seconds: float, task: Task) -> None:
        """Reports `seconds` with noise that every run of the same repeat shares."""
        script = ScriptedOptions(**task.measured.options)
        if operation == script.lacks and (
            not script.lacks_at or self._is_among(task, script.lacks_at)
        ):
            return
        if operation == "save" and self._is_among(task, script.slow_at):
            seconds *= script.slow_by
        noise = random.Random(f"{task.point.id}:{task.repeat}:{task.arm}:{operation}:{task.host}")
        value = seconds * (1 + noise.gauss(0, NOISE))
        if operation == "save" and script.sleeps_s:
            began = time.perf_counter()
            time.sleep(script.sleeps_s)
            value += time.perf_counter() - began
        samples = [Sample(operation, 0, TIME, value, "s")]
        if self._setup.soak:
            rss = 100 + script.keeps_mib * self._tasks
            samples.append(Sample(operation, 0, RSS.name, rss, RSS.unit))
        self._samples += samples
        self._emit(Measured(samples=tuple(samples)))

    def _is_among(self, task: Task, repeats: str) -> bool:
        return not task.warmup and str(self._number(task)) in repeats.split()

    def _number(self, task: Task) -> int:
        """Counts the repeats of a point, or of one arm of a pair."""
        if task.arm is None or not isinstance(task.point, Pair):
            return task.repeat
        design = self._info.designs[task.point.id]
        block, slot, operation = design.place(task.repeat)
        before = self._info.order(task.point, block)[:slot].count(task.arm)
        return (PER_ARM * block + before) * design.operations_per_life + operation

    def _meet(self, where: str, task: Task) -> None:
        """Waits for all hosts, as a collective would: for ever if one never comes."""
        if task.num_hosts == 1:
            return
        # The workers of a group are handed the same tasks. How often a repeat was tried may differ:
        # on some hosts it may have passed.
        group = f"{self._setup.coordinator}_{task.fence}".replace("/", "_")
        place = self._run.root / "meetings" / group / str(self._tasks) / where
        place.mkdir(parents=True, exist_ok=True)
        (place / str(task.host)).write_text("")
        while len(list(place.iterdir())) < task.num_hosts:
            time.sleep(0.005)

    def _emit(self, event: pydantic.BaseModel) -> None:
        try:
            os.write(self._events, event.model_dump_json().encode() + b"\n")
        except BrokenPipeError:
            if not OUTLIVES:
                leave()
            if isinstance(event, Measured):  # as it went wrong once: inside the benchmark
                raise Unfinished("BrokenPipeError", "nobody listens") from None


def tasks() -> Iterator[Task]:
    """Yields tasks until standard input is closed, which ends a task under way as well."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in itertools.chain(sys.stdin, [""]):
            lines.put(line)
        if not OUTLIVES:
            time.sleep(0.5)
            leave()

    threading.Thread(target=read, daemon=True).start()
    while line := lines.get():
        yield Task.model_validate_json(line)


def main(kind: type[FakeWorker] = FakeWorker) -> None:
    faulthandler.register(STACKS_SIGNAL)
    parser = argparse.ArgumentParser()
    parser.add_argument("--setup", required=True)
    parser.add_argument("--events", required=True, type=int)
    parsed = parser.parse_args()
    setup = WorkerSetup.model_validate_json(parsed.setup)
    if setup.parent is not None and not OUTLIVES and not die_with_parent(setup.parent):
        leave()
    worker = kind(setup, parsed.events)
    for task in tasks():
        worker.perform(task)


if __name__ == "__main__":
    main()
