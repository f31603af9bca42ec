"""A worker without JAX: it speaks the protocol, and does what a point's options say.

It is ready in a third of a second, and the seconds that it reports are known in advance, so that
orchestrator, pool, pairs and resuming are tested on it. Its records are real.
"""

import argparse
import datetime
import faulthandler
import itertools
import os
import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pydantic

from orbax_bench_core.measure import TIME, Sample
from orbax_bench_core.records import ErrorInfo, RunDirectory, State, host_provenance
from orbax_bench_core.worker import (
    STACKS_SIGNAL,
    Done,
    Measured,
    Ready,
    Task,
    Unrecorded,
    WorkerSetup,
)
from tests.support.scripted import ScriptedOptions

MODULE = "tests.support.fake_worker"
NOISE = 0.002
"""Standard deviation of the seconds that are reported, as a share of them."""


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
        self._run = RunDirectory(setup.root)
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
            )
        )

    def perform(self, task: Task) -> None:
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
            state=State(num_bytes=128, digest={"w": "0" * 32}, verified=True),
            provenance=task.provenance(self._provenance, self._setup.root, None),
        )
        if not (task.warmup and status == "skipped"):
            self._run.write_record(record)
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
        self._measure("save", float(str(script.save_s)), task)
        self._meet("saved", task)
        if script.act != "lag":
            time.sleep(script.lasts_s)
        if self._acts(task, script):
            self._act(task, script)
        self._meet("together", task)
        self._measure("load", script.load_s, task)

    def _acts(self, task: Task, script: ScriptedOptions) -> bool:
        """Says whether it happens here and now; a mark in the run directory outlives this."""
        here = script.on_host is None or script.on_host == task.host
        if not here or task.warmup != script.in_warmup:
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
            case "hang":
                time.sleep(600)
            case "lag":
                time.sleep(script.lasts_s)
            case "unrecorded":
                self._emit(Unrecorded(reason="cannot write the record: No space left on device"))
                signal.pause()
            case "behave":
                pass
            case unknown:
                raise Unfinished("ScriptError", f"no act is called {unknown!r}")

    def _measure(self, operation: str, seconds: float, task: Task) -> None:
        """Reports `seconds` with noise that every run of the same repeat shares."""
        noise = random.Random(f"{task.point.id}:{task.repeat}:{task.arm}:{operation}:{task.host}")
        value = seconds * (1 + noise.gauss(0, NOISE))
        sample = Sample(operation, 0, TIME, value, "s")
        self._samples.append(sample)
        self._emit(Measured(samples=(sample,)))

    def _meet(self, where: str, task: Task) -> None:
        """Waits for all hosts, as a collective would: for ever if one never comes."""
        if task.num_hosts == 1:
            return
        attempt = f"{task.point.id}_{task.arm}_{task.warmup}_{task.repeat}_{len(task.attempts)}"
        place = self._run.root / "meetings" / attempt / where
        place.mkdir(parents=True, exist_ok=True)
        (place / str(task.host)).write_text("")
        while len(list(place.iterdir())) < task.num_hosts:
            time.sleep(0.005)

    def _emit(self, event: pydantic.BaseModel) -> None:
        os.write(self._events, event.model_dump_json().encode() + b"\n")


def tasks() -> Iterator[Task]:
    """Yields tasks until standard input is closed, which ends a task under way as well."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in itertools.chain(sys.stdin, [""]):
            lines.put(line)
        time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    while line := lines.get():
        yield Task.model_validate_json(line)


def main() -> None:
    faulthandler.register(STACKS_SIGNAL)
    parser = argparse.ArgumentParser()
    parser.add_argument("--setup", required=True)
    parser.add_argument("--events", required=True, type=int)
    parsed = parser.parse_args()
    worker = FakeWorker(WorkerSetup.model_validate_json(parsed.setup), parsed.events)
    for task in tasks():
        worker.perform(task)


if __name__ == "__main__":
    main()
