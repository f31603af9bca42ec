"""Nodes of a Slurm cluster, which a batch job has: its script, its submission, and its end."""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final

import pydantic

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import TOKEN
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.launchers.launch import Launch, interrupted_by_sigterm, require_client
from orbax_bench_core.launchers.running import code_of_run, echo, environment_of_hosts, named_host

_REMEDY: Final = (
    "run this on a login node of the cluster, or elsewhere with another --on; Debian has it in the "
    "package slurm-client"
)
_ENDED: Final = frozenset({"CANCELLED", "COMPLETED", "FAILED", "FORGOTTEN", "REVOKED"})
_BROKEN_OFF: Final = frozenset({"DEADLINE", "OUT_OF_MEMORY", "TIMEOUT"})
_REQUEUED: Final = frozenset({"BOOT_FAIL", "NODE_FAIL", "PREEMPTED"})
"""Ends after which Slurm may queue a job again."""
_AS_SBATCH_HAS_THEM: Final = (
    *("partition", "account", "qos", "time", "gres", "mem"),
    *("gpus_per_node", "cpus_per_task"),
)
_GONE: Final = re.compile(r"Invalid job id", re.IGNORECASE)
_LABEL: Final = re.compile(r" *(\d+): ")
_LONGEST_ANSWER_S: Final = 60.0


class SlurmSettings(ConfigModel):
    """Settings of a batch job.

    Attributes:
        partition: The partition; by default that of the cluster.
        account: The account to charge.
        qos: The quality of service.
        time: The time limit, as `sbatch --time` takes it.
        gpus_per_node: GPUs of each node.
        gres: Generic resources of each node, as `sbatch --gres` takes them.
        cpus_per_task: CPUs of each host, where it shares its node with others.
        mem: Memory of each node; `0` is all of it.
        exclusive: Whether no other job runs on the nodes, whose work would be measured as ours.
        signal_s: Seconds before the time limit at which hosts are told to end.
        folder: Where script and log lie; by default `launch` in the run directory.
        program: What starts orbax-bench on the nodes; by default the Python of this command.
        sbatch: More options of `sbatch`, such as `--constraint=a100`.
        srun: More options of `srun`, such as `--container-image=...`.
        setup: Lines of the script before the hosts start, such as `module load cuda`.
        follow: Whether to wait for the end; false submits the job and leaves it.
        poll_s: Seconds between two questions to Slurm.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    time: str | None = None
    gpus_per_node: pydantic.PositiveInt | None = None
    gres: str | None = None
    cpus_per_task: pydantic.PositiveInt | None = None
    mem: str | None = None
    exclusive: bool = True
    signal_s: pydantic.PositiveInt = 60
    folder: str | None = None
    program: str | None = None
    sbatch: tuple[str, ...] = ()
    srun: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    follow: bool = True
    poll_s: Annotated[float, pydantic.Field(gt=0)] = 5.0

    @pydantic.field_validator("*")
    @classmethod
    def _one_line(cls, value: object) -> object:
        lines = value if isinstance(value, tuple) else (value,)
        if any(isinstance(line, str) and "\n" in line for line in lines):
            raise ValueError("a line break would begin another line of the script")
        return value


@dataclasses.dataclass(frozen=True)
class _State:
    """State of a job, as Slurm tells it.

    Attributes:
        name: Such as RUNNING; FORGOTTEN where Slurm knows no such job any more.
        reason: Why it waits.
        restarts: How often it was queued again.
        code: Exit code of its script; 128 and the signal where one has ended it.
    """

    name: str
    reason: str = ""
    restarts: int = 0
    code: int = 0

    @property
    def said(self) -> str:
        """The state for people."""
        why = f" ({self.reason})" if self.name == "PENDING" and self.reason != "None" else ""
        times = f", restarted {self.restarts}x" if self.restarts else ""
        return f"{self.name.lower().replace('_', ' ')}{why}{times}"


class Slurm:
    """Submits a batch job whose only step is the command, once on each node.

    A node that is lost ends neither the step nor its other tasks: process 0 notices by itself, and
    ends the run with what it has. A job that Slurm queues again goes on in the run directory.
    """

    def __init__(self, launch: Launch, settings: SlurmSettings) -> None:
        """Keeps what is to be submitted.

        Raises:
            UserError: There is no folder for script and log, or an image is given.
        """
        if launch.image is not None:
            raise UserError(
                "--image: hosts of Slurm are nodes, not containers; where the cluster has a plugin "
                "for them, give --set program=orbax-bench and --set "
                f"'srun=[\"--container-image={launch.image}\"]'"
            )
        if settings.folder is None and "://" in launch.output_directory:
            raise UserError(
                f"nodes write their log to a file, which {launch.output_directory} cannot hold: "
                "give --set folder=DIRECTORY, one that this machine and the nodes share"
            )
        self._launch = launch
        self._settings = settings
        inside = Path(launch.output_directory) / "launch"
        self._folder = (inside if settings.folder is None else Path(settings.folder)).absolute()
        self._script = self._folder / f"{launch.name}.sbatch"

    def shown(self) -> str:
        """Returns the script and the command that submits it."""
        return f"# {self._script}\n{self._text}\n# {TOKEN} is made anew\n{shlex.join(self._words)}"

    def start(self) -> int:
        """Submits the job, passes on what its hosts print, and waits for its end.

        Returns:
            The exit code of the run; 130 where the job was cancelled.

        Raises:
            UserError: There is no client here, or Slurm refuses the job.
        """
        for client in ("sbatch", "scontrol", "scancel"):
            require_client(client, _REMEDY)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._script.write_text(self._text)
        job = self._submit()
        log = self._folder / f"slurm-{job}.log"
        _say(f"submitted job {job} of {self._launch.hosts} nodes; its log is {log}")
        if not self._settings.follow:
            return 0
        lines = _Lines(log)
        try:
            with interrupted_by_sigterm():
                return self._follow(job, lines)
        except KeyboardInterrupt:
            _say(f"interrupted: cancelling job {job}")
            _ask("scancel", job)
            self._await_end(job, lines)
            return int(Exit.INTERRUPTED)

    @property
    def _text(self) -> str:
        """The script. It has no secrets: everybody may read it."""
        options = "\n".join(f"#SBATCH {_quoted(option)}" for option in self._options())
        step = shlex.join(("srun", *self._step(), *self._launch.by(self._settings.program)))
        lines = ("#!/bin/bash", options, *self._settings.setup, f"exec {step}")
        return "\n".join(lines) + "\n"

    @property
    def _words(self) -> tuple[str, ...]:
        # What sites set by SBATCH_EXPORT would keep the token from the nodes.
        return ("sbatch", "--parsable", "--export=ALL", str(self._script))

    def _options(self) -> Iterator[str]:
        settings = self._settings
        yield f"--job-name={self._launch.name}"
        yield f"--nodes={self._launch.hosts}"
        yield "--ntasks-per-node=1"
        yield "--requeue"
        yield "--open-mode=append"
        yield f"--output={str(self._folder).replace('%', '%%')}/slurm-%j.log"
        if settings.exclusive:
            yield "--exclusive"
        if settings.time is not None:
            yield f"--signal=TERM@{settings.signal_s}"
        for name in _AS_SBATCH_HAS_THEM:
            value = getattr(settings, name)
            if value is not None:
                yield f"--{name.replace('_', '-')}={value}"
        yield from settings.sbatch

    def _step(self) -> Iterator[str]:
        hosts = self._launch.hosts
        yield from (f"--nodes={hosts}", f"--ntasks={hosts}", "--ntasks-per-node=1")
        # A host that ends, or whose node is lost, is for process 0 to judge.
        yield from ("--kill-on-bad-exit=0", "--no-kill")
        # The hosts find each other without MPI, and one task has all of its node.
        yield from ("--mpi=none", "--cpu-bind=none", "--label", "--export=ALL")
        if self._settings.cpus_per_task is not None:
            yield f"--cpus-per-task={self._settings.cpus_per_task}"
        yield from self._settings.srun

    def _submit(self) -> str:
        done = _ask(*self._words, environment=environment_of_hosts())
        if done.returncode:
            raise UserError(f"Slurm refuses the job: {_one_line(done.stderr)}")
        return done.stdout.strip().partition(";")[0]

    def _follow(self, job: str, lines: _Lines) -> int:
        state = self._await_end(job, lines)
        if state.name == "COMPLETED":
            return state.code
        own = state.name == "FAILED" and state.code != Exit.INTERRUPTED
        again = "" if own else "; the same line again goes on from there"
        _say(f"job {job} has ended: {state.said}, exit code {state.code}{again}")
        if state.name == "CANCELLED":
            return int(Exit.INTERRUPTED)
        return code_of_run(state.code or 1)

    def _await_end(self, job: str, lines: _Lines) -> _State:
        """Passes on the log until Slurm says that the job is over, and returns how it ended.

        Where Slurm may queue it again, it is over for a moment only, and must be so twice.
        """
        told, ends, trouble = "", 0, ""
        while True:
            answer = _state(job)
            echo(lines.new(), functools.partial(_of_host, self._launch.hosts))
            if isinstance(answer, str):
                if answer != trouble:
                    _say(f"Slurm does not say how job {job} is, and is asked again: {answer}")
                trouble = answer
            else:
                ends = ends + 1 if answer.name in _ENDED | _BROKEN_OFF | _REQUEUED else 0
                if answer.said != told and not ends:
                    _say(f"job {job} is {answer.said}")
                told, trouble = answer.said, ""
                if ends > (answer.name in _REQUEUED):
                    echo(lines.rest(), functools.partial(_of_host, self._launch.hosts))
                    return answer
            time.sleep(self._settings.poll_s)


class _Lines:
    """Lines of a log that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._begun = b""

    def new(self) -> list[str]:
        """Returns the lines that were completed since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                found = file.read()
        except OSError:  # the job has not begun
            return []
        self._read += len(found)
        *whole, self._begun = (self._begun + found).split(b"\n")
        return [line.decode(errors="replace") + "\n" for line in whole]

    def rest(self) -> list[str]:
        """Returns what is left at the end, be its last line whole or not."""
        lines, begun = self.new(), self._begun
        self._begun = b""
        return [*lines, begun.decode(errors="replace") + "\n"] if begun else lines


def _state(job: str) -> _State | str:
    """Returns the state of a job, or why it cannot be told now."""
    shown = _ask("scontrol", "--oneliner", "show", "job", job)
    if shown.returncode == 0:
        return _shown_state(shown.stdout)
    if not _GONE.search(shown.stderr):
        return _one_line(shown.stderr)
    # The controller forgets a job after some minutes; a database, where there is one, does not.
    try:
        kept = _ask("sacct", "-n", "-P", "-X", "-j", job, "-o", "State,ExitCode")
    except FileNotFoundError:
        kept = None
    if kept is None or kept.returncode or "|" not in kept.stdout:
        return _State("FORGOTTEN", code=1)
    state, _, code = kept.stdout.strip().splitlines()[-1].partition("|")
    return _State(state.split()[0], code=_code(code))


def _shown_state(text: str) -> _State:
    fields = dict(re.findall(r"(\w+)=(\S*)", text))
    return _State(
        fields.get("JobState", "UNKNOWN"),
        reason=fields.get("Reason", "None"),
        restarts=int(fields.get("Restarts", "0")),
        code=_code(fields.get("ExitCode", "0:0")),
    )


def _code(text: str) -> int:
    """Returns an exit code as a shell gives it, from Slurm's CODE:SIGNAL."""
    code, _, signal = text.partition(":")
    return 128 + int(signal) if signal.isdigit() and int(signal) else int(code or 0)


def _of_host(hosts: int, line: str) -> str:
    """Returns a line of the log as people see it: `srun` puts the number of the task before it."""
    label = _LABEL.match(line)
    if label is None or int(label[1]) >= hosts:
        return line
    return named_host(int(label[1]), line[label.end() :])


def _quoted(option: str) -> str:
    """Returns an option as `sbatch` reads it from a script."""
    return option if re.fullmatch(r"[\w@%+=:,./\[\]-]+", option) else shlex.quote(option)


def _ask(
    *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a client of Slurm; one that does not answer in time has failed."""
    try:
        return subprocess.run(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_ANSWER_S,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            words, 1, "", f"`{words[0]}` gave no answer in {_LONGEST_ANSWER_S:g} s"
        )


def _one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
