"""Another machine as a host: its agent starts workers there, and forwards what they say."""

from __future__ import annotations

import dataclasses
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.execute.hosts.host import HostLost, Inbox, Output, WorkerDied
from orbax_bench_core.execute.hosts.wire import ContactTimes, Message, Wire
from orbax_bench_core.execute.signs import Signs
from orbax_bench_core.execute.variables import without_cluster
from orbax_bench_core.provenance import REJOINED
from orbax_bench_core.worker import WorkerSetup

_ANSWER_S = 30.0
"""Seconds that an agent may take for an answer, on top of what it is asked to do."""
_END_S = 10.0
"""Seconds until an agent has said how a worker ended whose events have ended."""
_OF_EACH_HOST = ("PYTHONPATH",)
"""Variables that no host takes from another: its suite lies in a folder of its own."""


@dataclasses.dataclass(eq=False, kw_only=True)
class RemoteHost:
    """A machine whose agent has joined; what it says of itself, and whether it is still there."""

    wire: Wire
    index: int
    name: str
    machine: str
    provenance: dict[str, Any]
    rejoined: int  # how often it has come back during this run
    root: str  # the run directory, as process 0 sees it
    contact: ContactTimes
    on_loss: Callable[[str], None]
    say: Callable[[str], None]
    lost: str = ""  # why there is no contact any more; empty while there is
    # why it has none of some environments that it was asked to make, by name
    unmade: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._made: dict[str, EnvironmentConfig] = {}
        self._locked = False
        self._ids = itertools.count()
        self._guard = threading.Lock()
        self._workers: dict[int, RemoteWorker] = {}
        self._answers: dict[int, queue.SimpleQueue[Any]] = {}
        self._closing = False
        self._reader = threading.Thread(target=self._read, name=f"host {self.index}", daemon=True)
        self._reader.start()
        threading.Thread(target=self._beat, name=f"beat {self.index}", daemon=True).start()

    def make_environments(self, configs: Sequence[EnvironmentConfig]) -> None:
        """Has the agent make environments that it has not made yet; `unmade` then says why not."""
        new = [config for config in configs if self._made.get(config.name) != config]
        if not new:
            return
        given = [config.model_dump(mode="json") for config in new]
        # Downloads take as long as they take; the beat tells whether the host is there.
        failed = self.ask("environments", within_s=None, configs=given)
        if failed is None:  # contact is lost
            return
        for config in new:
            self._made[config.name] = config
            self.unmade.pop(config.name, None)
        self.unmade.update(failed)

    def run_module(
        self, module: str, argument: str, *, variables: Mapping[str, str], timeout_s: float
    ) -> Output:
        """Makes the agent run a module, with its own run directory for `root`; see `LocalHost`."""
        answer = self.ask(
            "module",
            within_s=timeout_s + _ANSWER_S,
            module=module,
            argument=argument,
            root=self.root,
            variables=dict(variables),
            timeout_s=timeout_s,
        )
        if answer is None:
            return Output(host=self.index, code=1, err=self.lost or "its agent does not answer")
        return Output(host=self.index, **answer)

    def lock(self, run: str) -> None:
        """Has the agent take the measuring lock of its machine for a run, however long it waits."""
        if not self._locked:
            self._locked = self.ask("lock", within_s=None, run=run) is not None

    def unlock(self) -> None:
        """Has the agent give the lock back."""
        if self._locked:
            self._locked = False
            self.ask("unlock")

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        python: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> list[RemoteWorker]:
        """Has the agent start one process per setup; see `LocalHost`."""
        # That machine keeps its own variables, Pythons, suite and run directory: what travels is by
        # which the variables differ from those of process 0, and the names of Python and logs.
        here = without_cluster(os.environ)
        wanted = without_cluster(environment)
        for own in _OF_EACH_HOST:
            here.pop(own, None)
            wanted.pop(own, None)
        if self.rejoined:
            wanted[REJOINED] = str(self.rejoined)
        workers = []
        for setup, log in zip(setups, logs, strict=True):
            worker = RemoteWorker(self, next(self._ids), inbox, setup.process_id)
            with self._guard:
                self._workers[worker.id] = worker
            self.tell(
                "launch",
                worker=worker.id,
                setup=setup.model_dump_json(),
                folder=_below(self.root, setup.root),
                sets={name: text for name, text in wanted.items() if here.get(name) != text},
                unsets=[name for name in here if name not in wanted],
                python=python,
                log=log.name,
            )
            # Contact may have been lost before `_lose` could tell this worker of it.
            if self.lost:
                worker.lose(self.lost)
            workers.append(worker)
        return workers

    def tell(self, op: str, **fields: object) -> None:
        """Sends a message; where contact is lost, those who wait for an effect are told of that."""
        try:
            self.wire.send({"op": op, **fields})
        except OSError as error:
            self._lose(str(error))

    def ask(self, op: str, *, within_s: float | None = _ANSWER_S, **fields: object) -> Any:
        """Sends a question and returns the answer; None if contact is lost, or it takes long.

        Args:
            op: What is asked.
            within_s: Seconds that the answer may take; None for any time while contact lasts.
            **fields: What the question needs, as JSON can hold it.
        """
        question = next(self._ids)
        box: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with self._guard:
            if self.lost:
                return None
            self._answers[question] = box
        self.tell(op, question=question, **fields)
        try:
            return box.get(timeout=within_s)
        except queue.Empty:
            return None
        finally:
            with self._guard:
                self._answers.pop(question, None)

    def forget(self, worker: int) -> None:
        """Drops a worker that has been stopped."""
        with self._guard:
            self._workers.pop(worker, None)

    def dismiss(self, code: int) -> None:
        """Tells the agent that the run has ended, and waits until it has left."""
        self._closing = True
        self.tell("bye", code=code)
        self._reader.join(self.contact.lost_s)
        self.wire.close()

    def _beat(self) -> None:
        while not self.lost:
            time.sleep(self.contact.beat_s)
            self.tell("beat")

    def _read(self) -> None:
        try:
            while True:
                self._take(self.wire.receive())
        except OSError as error:
            self._lose(str(error))
        except Exception as error:  # noqa: BLE001 - whatever the input of a peer leads to
            self._lose(f"sent a message of another form ({type(error).__name__})")

    def _take(self, message: Message) -> None:
        if message["event"] == "leaving":
            raise ConnectionError(f"was told to end ({message['why']})")
        if message["event"] == "say":
            self.say(f"host {self.index} ({self.name}): {message['line']}")
            return
        if message["event"] == "answer":
            with self._guard:
                box = self._answers.get(message["question"])
            if box is not None:
                box.put(message["answer"])
            return
        with self._guard:
            workers = dict(self._workers)
        for id_, signs in message.get("signs", {}).items():
            if int(id_) in workers:
                workers[int(id_)].show(Signs(**signs))
        worker = workers.get(message.get("worker", -1))
        if worker is not None and message["event"] == "line":
            worker.say(message["line"].encode())
        elif worker is not None and message["event"] == "end":
            worker.end(WorkerDied(message["why"], message["tail"]))

    def _lose(self, why: str) -> None:
        with self._guard:
            if self.lost:
                return
            self.lost = f"no contact with host {self.index} ({self.name}): it {why}"
            workers, boxes = list(self._workers.values()), list(self._answers.values())
        self.wire.close()
        for box in boxes:
            box.put(None)
        for worker in workers:
            worker.lose(self.lost)
        if not self._closing:
            self.on_loss(self.lost)


class RemoteWorker:
    """A worker on another machine."""

    def __init__(self, host: RemoteHost, id_: int, inbox: Inbox, index: int) -> None:
        """Names a worker that is about to be started; its lines arrive under `index`."""
        self.id = id_
        self._host = host
        self._inbox = inbox
        self._index = index
        self._signs = Signs(hostname=host.name)
        self._death: WorkerDied | None = None
        self._ended = threading.Event()

    def send(self, line: str) -> None:
        """Hands one line to the worker; see `LocalWorker`."""
        if self._death is not None:
            raise self._death
        self._host.tell("send", worker=self.id, line=line)

    def death(self) -> WorkerDied:
        """Describes the end of a worker that has ended."""
        self._ended.wait(_END_S)
        return self._death or WorkerDied("the worker has ended; its host does not say how", "")

    def stacks(self) -> str:
        """Returns the stack of each of its threads; see `LocalWorker`."""
        return str(self._host.ask("stacks", worker=self.id) or self._host.lost)

    def signs(self) -> Signs:
        """Returns its last signs, which come with every beat of its host."""
        return self._signs

    def dismiss(self) -> None:
        """Lets the worker end once it is idle, without waiting for it."""
        self._host.tell("dismiss", worker=self.id)

    def stop(self) -> None:
        """Ends the worker and waits until its host says that it is gone."""
        self._host.ask("stop", worker=self.id)
        self._host.forget(self.id)

    def kill(self) -> None:
        """Has its host end the worker by SIGKILL; see `LocalWorker`."""
        self._host.tell("kill", worker=self.id)

    def kill_host(self) -> None:
        """Has its host end its workers and its agent by SIGKILL, as when a machine fails."""
        self._host.tell("die")

    def say(self, line: bytes) -> None:
        """Takes a line that it has said."""
        self._inbox.put((self._index, line))

    def show(self, signs: Signs) -> None:
        """Takes its signs."""
        self._signs = signs

    def end(self, death: WorkerDied) -> None:
        """Takes its end."""
        if self._ended.is_set():
            return
        self._death = death
        self._ended.set()
        self._inbox.put((self._index, b""))

    def lose(self, why: str) -> None:
        """Takes the loss of its host."""
        self._signs = dataclasses.replace(self._signs, ended=True)
        self.end(HostLost(why, ""))


def _below(root: str, folder: str) -> str:
    """Returns the path of a folder within `root`; empty for `root` itself."""
    within = folder.removeprefix(root)
    assert folder == root + within, f"{folder} is not below {root}, which the hosts share"
    return within.lstrip("/")
