"""Worker processes on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from orbax_bench_core.config import EnvironmentConfig
from orbax_bench_core.environments import EnvironmentFailed, Interpreter, make_environments
from orbax_bench_core.errors import log_pieces, redacted
from orbax_bench_core.execute.hosts.host import Inbox, Output, Unmade, WorkerDied, stop_all
from orbax_bench_core.execute.hosts.join_files import PortRange, free_port
from orbax_bench_core.execute.liveness import signal_name
from orbax_bench_core.execute.lock import LOCK_FILE, held_locks, measuring_lock
from orbax_bench_core.execute.signs import Signs, kernel_stacks, read_signs, sleepers
from orbax_bench_core.execute.variables import without_cluster
from orbax_bench_core.files import atomic_file, machine_id
from orbax_bench_core.measure import MemoryKills
from orbax_bench_core.provenance import host_provenance
from orbax_bench_core.python_command import python_command
from orbax_bench_core.worker import STACKS_SIGNAL, WorkerSetup

_STOP_S = 5.0
"""Seconds that a worker has to end by itself after each signal."""
_TAIL_LINES = 15
_TAIL_BYTES = 2**20
"""Bytes of a log that are read for its last lines: one line may be as long as it likes."""
_STACK_LINES = 100
_STACKS_S = 2.0
"""Seconds that a worker has to print the stacks of its threads."""
_POLL_S = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalHost:
    """This machine: each worker is a process beside this one."""

    # what Python runs; tests put a worker here that needs no JAX
    module: str = "orbax_bench_core.worker"
    # address at which the first worker of a group coordinates the others
    address: str = "127.0.0.1"
    lock_file: Path = LOCK_FILE  # the file that every run on this machine locks
    # where that address takes its port from; None takes any that is free
    ports: PortRange | None = None
    # environments that were made here, or why there is none, by name
    interpreters: dict[str, Interpreter | EnvironmentFailed] = dataclasses.field(
        default_factory=dict, compare=False
    )

    def alone(
        self, say: Callable[[str], None], run: str = ""
    ) -> contextlib.AbstractContextManager[None]:
        """Holds the measuring lock, so that nothing else of ours measures here meanwhile."""
        return measuring_lock(say, lock_file=self.lock_file, run=run)

    def machines(self) -> Sequence[str]:
        """Returns the identity of each host's machine, the same in all of its containers."""
        return (machine_id(),)

    def run_module(
        self, module: str, argument: str, *, variables: Mapping[str, str], timeout_s: float
    ) -> Iterator[Output]:
        """Runs a module on each host, one after the other, as they share storage.

        Args:
            module: What `python -m` runs.
            argument: Its only argument.
            variables: Variables that it has in addition to those of this process.
            timeout_s: Seconds after which it is ended.

        Yields:
            What each host printed, and its exit code; no code where the time was over.
        """
        try:
            done = subprocess.run(
                python_command("-m", module, argument),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
                env={**without_cluster(os.environ), **variables},
            )
        except subprocess.TimeoutExpired:
            yield Output(code=None)
        else:
            yield Output(code=done.returncode, out=done.stdout, err=done.stderr)

    def provenance(self, worker: int) -> dict[str, Any]:  # noqa: ARG002 - all are here
        """Returns the known facts about the host of a worker that never became ready."""
        return host_provenance()

    def free_address(self) -> str:
        """Returns an address at which the first worker of a group can coordinate the others."""
        ports = self.ports
        port = free_port(self.address) if ports is None else ports.take(self.address)
        return f"[{self.address}]:{port}" if ":" in self.address else f"{self.address}:{port}"

    def make_environments(
        self,
        configs: Sequence[EnvironmentConfig],
        *,
        folder: Path | None,
        say: Callable[[str], None],
    ) -> Unmade:
        """Makes the environments of a suite, for which `launch` is asked by name.

        Args:
            configs: The environments that points name.
            folder: Folder of the suite, for relative paths; None for a suite without a file.
            say: Takes lines for people.

        Returns:
            Why there is none, by name of the environment, then by index of the host.
        """
        made = make_environments(configs, folder=folder, say=say)
        self.interpreters.update(made)
        return {
            name: {0: str(found)}
            for name, found in made.items()
            if isinstance(found, EnvironmentFailed)
        }

    def launch(
        self,
        setups: Sequence[WorkerSetup],
        *,
        environment: Mapping[str, str],
        python: str,
        logs: Sequence[Path],
        inbox: Inbox,
    ) -> list[LocalWorker]:
        """Starts one worker per setup, and does not wait until they are ready.

        Args:
            setups: What each worker is told, in the order of their indices.
            environment: Variables of the workers.
            python: Name of the environment whose Python runs them; empty for that of this command.
            logs: File that each one's output is added to.
            inbox: Takes each line that a worker sends, with its index, and an empty one at its end.
        """
        interpreter = self._interpreter(python)
        workers: list[LocalWorker] = []
        try:
            for setup, log_file in zip(setups, logs, strict=True):
                own = setup.model_copy(
                    update={
                        "parent": os.getpid(),
                        "environment": python,
                        "interpreter": interpreter.calls_itself or interpreter.executable,
                    }
                )
                command = python_command(
                    *("-m", self.module, "--setup", own.model_dump_json()),
                    executable=interpreter.executable,
                )
                workers.append(
                    LocalWorker(
                        command,
                        # A worker has its place from its setup, not from the parent of this.
                        environment=interpreter.environment(without_cluster(environment)),
                        log_file=log_file,
                        inbox=inbox,
                        index=setup.process_id,
                    )
                )
        except BaseException:
            stop_all([worker.stop for worker in workers])
            raise
        return workers

    def _interpreter(self, name: str) -> Interpreter:
        if not name:
            return Interpreter(sys.executable, {})
        found = self.interpreters.get(name) or EnvironmentFailed("it was not made here")
        if isinstance(found, EnvironmentFailed):
            raise EnvironmentFailed(f"{name}: {found}", found.output)
        return found


class LocalWorker:
    """A worker process, with lines going in and lines coming out."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_file: Path,
        inbox: Inbox,
        index: int,
    ) -> None:
        """Starts the process; it prints to `log_file`, and its events go to `inbox` by `index`."""
        self._inbox = inbox
        self._index = index
        self._ended = False
        self._log_file = log_file
        self._memory_kills = MemoryKills.read()
        log_file.parent.mkdir(parents=True, exist_ok=True)
        # A pipe of their own, for libraries print to standard output whatever they like.
        events_in, events_out = os.pipe()
        no_link = os.O_NOFOLLOW  # a log is written to, not replaced
        with open(log_file, "ab", opener=lambda name, f: os.open(name, f | no_link, 0o666)) as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [*command, "--events", str(events_out)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[events_out, *held_locks()],
                env=dict(environment),
                # Ctrl-C is for the orchestrator, which then stops its workers in order.
                start_new_session=True,
            )
        # A pipe ends once all writers have closed it: so its end is that of the worker.
        os.close(events_out)
        threading.Thread(target=self._read, args=(events_in,), daemon=True).start()

    def send(self, line: str) -> None:
        """Hands one line to the worker.

        Raises:
            WorkerDied: It has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self.death() from None

    def death(self) -> WorkerDied:
        """Describes the end of a worker that has ended."""
        return WorkerDied(self._cause_of_death(), self.tail())

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """Returns the last lines that the worker printed."""
        with self._log_file.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_start, end - _TAIL_BYTES))
            printed = log.read(_TAIL_BYTES).decode(errors="replace").splitlines()
        return redacted("\n".join(printed[-lines:]))

    def stacks(self) -> str:
        """Has the worker print where each of its threads stands, and returns its last lines.

        A worker that is stopped cannot answer: then its stacks in the kernel are returned.
        """
        if self.signs().stopped:
            return kernel_stacks(self._process.pid)
        before = self._log_file.stat().st_size
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, STACKS_SIGNAL)
        size, deadline = before, time.monotonic() + _STACKS_S
        while time.monotonic() < deadline:
            time.sleep(_POLL_S)
            last, size = size, self._log_file.stat().st_size
            if size > before and size == last:
                break
        return "\n".join(filter(None, [self.tail(_STACK_LINES), sleepers(self._process.pid)]))

    def signs(self) -> Signs:
        """Returns its signs in /proc, whether its events are open, and its exit code."""
        exit_code = self._process.poll()
        return read_signs(self._process.pid, ended=self._ended, exit_code=exit_code)

    def dismiss(self) -> None:
        """Lets the worker end once it is idle, without waiting for it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def stop(self) -> None:
        """Ends the worker and all that it started, and waits until they are gone."""
        self.dismiss()
        # One that is stopped does not hear SIGTERM.
        polite = () if self.signs().stopped else (signal.SIGTERM,)
        self._end(*polite, signal.SIGKILL)

    def kill(self) -> None:
        """Ends the worker and all that it started by SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, *signals: signal.Signals) -> None:
        for signal_ in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
                break
        redact_log(self._log_file, self._log_start)

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as events:
            for line in events:
                self._inbox.put((self._index, line))
        self._ended = True
        self._inbox.put((self._index, b""))

    def _cause_of_death(self) -> str:
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            return "the worker closed its events, and has not ended"
        if code >= 0:
            return f"the worker ended with exit code {code}"
        name = signal_name(-code)
        killed = f"the worker was killed by {name}"
        if name != "SIGKILL":
            return killed
        return f"{killed}; {MemoryKills.read().cause_since(self._memory_kills)}"


_PIECE: Final = 2**20
"""Bytes of a line that are read at once: a line may be as long as its file."""


def redact_log(file: Path, start: int) -> None:
    """Takes credentials out of what a worker has printed, once it has ended."""
    # Libraries print the address that failed, with its signature, and the headers that they sent. A
    # log that cannot be written again is no reason for a run to fail.
    with contextlib.suppress(OSError), file.open("rb") as log:
        log.seek(start)
        if all(redacted(piece) == piece for piece in log_pieces(_lines(log))):
            return
        log.seek(0)
        with atomic_file(file, durable=False) as again:
            again.writelines(
                redacted(piece).encode(errors="surrogateescape")
                for piece in log_pieces(_lines(log))
            )


def _lines(log: IO[bytes]) -> Iterator[bytes]:
    while line := log.readline(_PIECE):
        yield line
