"""Agent of a host: it joins process 0, and runs workers for it until the run ends."""

import contextlib
import dataclasses
import functools
import os
import platform
import queue
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.environments import EnvironmentFailed
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute.hosts.host import Inbox, WorkerDied
from orbax_bench_core.execute.hosts.join_files import ClusterRun
from orbax_bench_core.execute.hosts.local import LocalHost, LocalWorker
from orbax_bench_core.execute.hosts.suite_archive import MOST_PACKED_BYTES, differing, unpack
from orbax_bench_core.execute.hosts.wire import Message, Refused, Wire, prove_as_agent
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.files import machine_id, new_scratch_folder, scratch_folder
from orbax_bench_core.interrupts import raise_if_told
from orbax_bench_core.provenance import host_provenance
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.sweep import benchmark_environment, suite_folder
from orbax_bench_core.worker import WorkerSetup

_CONNECT_S: Final = 5.0
_PAUSE_S: Final = 0.3
"""Seconds between two tries to join."""
_MAKERS_S = 4.0
"""Seconds in which threads that make environments have to end once their children are killed."""
_POLL_S = 0.1


class Agent:
    """Runs workers on this host for process 0 of a cluster.

    The kernel ends a worker with the thread that has started it, so `run` is called in a thread
    that lives as long as this process.
    """

    def __init__(self, run: ClusterRun, *, token: str | None, local: LocalHost) -> None:
        self._cluster, self._directory = run.cluster, run.directory
        self._contact, self._say = run.contact, run.say
        self._suite = run.suite
        self._files = run.join_files
        self._equal = dict(run.equal)
        self._token = token
        self._local = local
        self._workers: dict[int, LocalWorker] = {}
        self._lock = contextlib.ExitStack()
        self._makers: set[int] = set()
        # A folder of this host for logs, where the run directory is in a bucket.
        remote = "://" in str(self._directory.root)
        self._logs = new_scratch_folder("orbax-bench-logs") if remote else None

    def run(self) -> int:
        """Joins process 0, serves it until the run ends, and returns its exit code; 75 if lost."""
        with scratch_folder("orbax-bench-suite") as folder:
            try:
                return self._run(folder)
            finally:
                if self._logs is not None:
                    shutil.rmtree(self._logs, ignore_errors=True)

    def _run(self, folder: Path) -> int:
        """Runs; the copy of a suite that this host does not have lies in `folder`."""
        wire = self._join(folder)
        self._say(f"joined process 0 at {self._cluster.address} as host {self._cluster.rank}")
        threading.Thread(target=self._beat, args=(wire,), name="beat", daemon=True).start()
        try:
            return self._serve(wire)
        except OSError as error:
            self._say(f"no contact with process 0 at {self._cluster.address}: it {error}")
            return Exit.LOST_HEAD
        except KeyboardInterrupt:
            _tell(wire, event="leaving", why="interrupted, or preempted")
            raise
        finally:
            self._kill_all()
            wire.close()

    def _join(self, folder: Path) -> Wire:
        """Returns a connection over which process 0 has accepted this host."""
        begun = time.monotonic()
        deadline = begun + self._contact.join_s
        refused_until: float | None = None
        told, why = set[str](), "process 0 has not started"
        while time.monotonic() < deadline:
            token = self._token or self._files.token()
            try:
                return self._try_to_join(token, folder)
            except OSError as error:
                why = str(error) if token else f"there is no token in {self._directory.root} yet"
            except Refused as refusal:
                why = f"refused: {refusal}"
                now = time.monotonic()
                refused_until = refused_until or now + self._contact.retry_s
                if not refusal.again or now > refused_until:
                    break
            if why not in told:
                self._say(f"waiting for process 0 at {self._cluster.address}: {why}")
                told.add(why)
            time.sleep(_PAUSE_S)
        raise UserError(
            f"host {self._cluster.rank} ({platform.node()}) cannot join process 0 at "
            f"{self._cluster.address}: {why} (after {time.monotonic() - begun:.1f} s)"
        )

    def _try_to_join(self, token: str | None, folder: Path) -> Wire:
        address = (self._cluster.head, self._cluster.port)
        wire = Wire(socket.create_connection(address, timeout=_CONNECT_S), self._contact.lost_s)
        try:
            prove_as_agent(wire, token, self._cluster.rank, self._contact.prove_s)
            asked = wire.receive()
            if "refused" in asked:
                raise Refused(str(asked["refused"]), again=bool(asked.get("again")))
            place = self._files.place(str(asked["place"]))
            here = place == asked["place"]
            wire.send(
                {
                    "name": platform.node(),
                    "size": self._cluster.size,
                    "machine": machine_id(),
                    "provenance": host_provenance(),
                    "equal": self._equal,
                    "place": place,
                    "root": str(self._directory.root),
                    "suite": self._take_suite(asked["suite"], folder) if here else "",
                }
            )
            answer = wire.receive()
            if "refused" in answer:
                raise Refused(str(answer["refused"]), again=bool(answer.get("again")))
        except (KeyError, ValueError, TypeError):
            wire.close()
            raise Refused("what answers there is no process 0 of a run", again=True) from None
        except BaseException:
            wire.close()
            raise
        return wire

    def _take_suite(self, shown: Message | None, folder: Path) -> str:
        """Compares the suite of this host with that of process 0, or takes the copy of it."""
        if shown is None:
            return ""
        if Path(self._suite).is_file():
            differ = differing(shown["hashes"], self._suite)
            return differ and f"{differ} is not as on process 0; copy it, or remove it"
        try:
            data = self._files.suite_archive(MOST_PACKED_BYTES)
            unpack(data, folder, digest=shown["digest"])
        except (OSError, ValueError) as error:
            return f"there is no {self._suite}, and the copy of process 0 cannot be read: {error}"
        self._say(f"{self._suite} is not on this host: taking the copy of process 0")
        self._suite = str(folder / shown["name"])
        return ""

    def _serve(self, wire: Wire) -> int:
        while True:
            raise_if_told()
            message = wire.receive()
            match message["op"]:
                case "beat":
                    pass
                case "bye":
                    return int(message["code"])
                case "launch":
                    self._launch(wire, message)
                case "environments":
                    configs = [EnvironmentConfig(**config) for config in message["configs"]]
                    make = functools.partial(self._make_environments, wire, configs)
                    self._later(wire, message, make)
                case "lock":
                    take = functools.partial(self._take_lock, wire, str(message["run"]))
                    self._later(wire, message, take)
                case "unlock":
                    self._later(wire, message, self._lock.close)
                case "module":
                    self._later(wire, message, functools.partial(self._run_module, message))
                case "stop":
                    worker = self._workers.pop(message["worker"], None)
                    self._later(wire, message, worker.stop if worker else None)
                case "stacks":
                    worker = self._workers.get(message["worker"])
                    self._later(wire, message, worker.stacks if worker else None)
                case "send" if message["worker"] in self._workers:
                    with contextlib.suppress(WorkerDied):  # its end is on the way
                        self._workers[message["worker"]].send(message["line"])
                case "kill" if message["worker"] in self._workers:
                    kill = self._workers[message["worker"]].kill
                    threading.Thread(target=kill, name="kill", daemon=True).start()
                case "die":  # as a failure of its machine does: without a word to anybody
                    for worker in list(self._workers.values()):
                        worker.kill()
                    os.kill(os.getpid(), signal.SIGKILL)
                case "dismiss" if message["worker"] in self._workers:
                    self._workers[message["worker"]].dismiss()

    def _launch(self, wire: Wire, message: Message) -> None:
        id_, inbox = int(message["worker"]), queue.SimpleQueue[tuple[int, bytes]]()
        setup = WorkerSetup.model_validate_json(message["setup"])
        run = RunDirectory(str(self._directory.root / message["folder"]))
        own = benchmark_environment(self._suite)
        kept = {name: text for name, text in own.items() if name not in message["unsets"]}
        try:
            (self._workers[id_],) = self._local.launch(
                [setup.model_copy(update={"root": str(run.root)})],
                environment={**kept, **message["sets"]},
                python=message["python"],
                logs=[(self._logs or Path(run.logs)) / Path(message["log"]).name],
                inbox=inbox,
            )
        except (OSError, EnvironmentFailed) as error:
            _tell(wire, event="end", worker=id_, why=f"the worker did not start: {error}", tail="")
            return
        pump = threading.Thread(target=self._pump, args=(wire, id_, inbox), daemon=True)
        pump.start()

    def _make_environments(
        self, wire: Wire, configs: Sequence[EnvironmentConfig]
    ) -> dict[str, str]:
        """Makes environments on this host; returns why there is none, by name."""
        say = functools.partial(self._say_to_all, wire)
        with self._making():
            folder = suite_folder(self._suite)
            unmade = self._local.make_environments(configs, folder=folder, say=say)
        return {name: reason for name, reasons in unmade.items() for reason in reasons.values()}

    def _run_module(self, message: Message) -> dict[str, Any]:
        argument = message["argument"].replace(message["root"], str(self._directory.root))
        with self._making():
            (output,) = self._local.run_module(
                message["module"],
                argument,
                variables=message["variables"],
                timeout_s=message["timeout_s"],
            )
        return {"code": output.code, "out": output.out, "err": output.err}

    @contextlib.contextmanager
    def _making(self) -> Iterator[None]:
        """Notes a thread that waits for processes other than workers."""
        self._makers.add(threading.get_ident())
        try:
            yield
        finally:
            self._makers.discard(threading.get_ident())

    def _take_lock(self, wire: Wire, run: str) -> bool:
        self._lock.enter_context(self._local.alone(functools.partial(self._say_to_all, wire), run))
        return True

    def _say_to_all(self, wire: Wire, line: str) -> None:
        self._say(line)
        _tell(wire, event="say", line=line)

    def _pump(self, wire: Wire, id_: int, inbox: Inbox) -> None:
        worker = self._workers[id_]
        while line := inbox.get()[1]:
            _tell(wire, event="line", worker=id_, line=line.decode())
        death = worker.death()
        signs = {id_: dataclasses.asdict(worker.signs())}
        _tell(wire, event="end", worker=id_, why=str(death), tail=death.tail, signs=signs)

    def _beat(self, wire: Wire) -> None:
        while True:
            time.sleep(self._contact.beat_s)
            signs = {
                id_: dataclasses.asdict(worker.signs())
                for id_, worker in list(self._workers.items())
            }
            if not _tell(wire, event="beat", signs=signs):
                return

    def _later(self, wire: Wire, message: Message, answer: Callable[[], object] | None) -> None:
        """Answers once `answer` returns, which may take seconds, and serves meanwhile."""
        threading.Thread(target=self._answer, args=(wire, message, answer), daemon=True).start()

    @staticmethod
    def _answer(wire: Wire, message: Message, answer: Callable[[], object] | None) -> None:
        found = None if answer is None else answer()
        _tell(wire, event="answer", question=message["question"], answer=found)

    def _kill_all(self) -> None:
        """Ends all that was started here: nobody is left who could use it."""
        for worker in list(self._workers.values()):
            worker.kill()
        # Environments are made in threads, for which Python waits before this process can end.
        deadline = time.monotonic() + _MAKERS_S
        while self._makers and time.monotonic() < deadline:
            _kill_children()
            time.sleep(_POLL_S)
        self._lock.close()


def _tell(wire: Wire, **message: Any) -> bool:
    """Sends a message; returns whether process 0 is still there."""
    try:
        wire.send(message)
    except OSError:
        return False  # the thread that receives tells of it
    return True


def _kill_children() -> None:
    import psutil

    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
