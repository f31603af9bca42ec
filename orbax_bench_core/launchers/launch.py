"""Command that is started on every host, and what a launcher does with it."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import shutil
import sys
from typing import Final, Protocol

from orbax_bench_core.errors import UserError
from orbax_bench_core.launchers.hardware import SliceShape

_DIGITS: Final = 10
LONGEST_NAME: Final = 20
"""Characters of a name that is made here; JobSet leaves 26, and 22 to one that Pathways makes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Launch:
    """Command to start, and the hosts that it is started on.

    Attributes:
        name: Name of the job: lower case letters, digits and dashes.
        command: Words of the command, the same on every host; the first is `orbax-bench`.
        output_directory: The run directory, which all hosts share.
        hosts: How many hosts there are in all.
        image: Container image by digest, where hosts are containers.
        tpu: The TPU slice that hosts belong to; None for machines without TPUs.
        slices: How many such slices there are.
        noted: File in which a place of Google Cloud notes what it has created; empty for none.
    """

    name: str
    command: tuple[str, ...]
    output_directory: str
    hosts: int = 1
    image: str | None = None
    tpu: SliceShape | None = None
    slices: int = 1
    noted: str = ""

    @property
    def suite(self) -> str:
        """The suite file, as the command names it; empty for a step of a run that has one."""
        return "" if self.command[1] == "step" else self.command[self._suite_at]

    def with_suite(self, suite: str) -> tuple[str, ...]:
        """The words of the command with another place of the suite file."""
        at = self._suite_at
        return (*self.command[:at], suite, *self.command[at + 1 :])

    @property
    def _suite_at(self) -> int:
        return 3 if self.command[2] == "--suite" else 2

    @property
    def line(self) -> str:
        """The command as a shell takes it."""
        return shlex.join(self.command)

    @property
    def here(self) -> tuple[str, ...]:
        """The command by this Python's own entry point, for hosts that share its files."""
        return (sys.executable, "-m", "orbax_bench_core.cli", *self.command[1:])

    def by(self, program: str | None) -> tuple[str, ...]:
        """The command by a program of the hosts, such as `orbax-bench`; None is this Python's."""
        return (*shlex.split(program), *self.command[1:]) if program else self.here


def job_name(*about: str, stem: str = "") -> str:
    """Returns a name for a job that is short enough for every place, and the same the next time."""
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()[:_DIGITS]
    room = LONGEST_NAME - len(f"ob--{digest}")
    return "-".join(filter(None, ["ob", stem[:room].strip("-"), digest]))


class Launcher(Protocol):
    """One way to start a command on every host."""

    def shown(self) -> str:
        """Returns all that would be done: files with their content, manifests, command lines.

        Secrets are named, never shown. Nothing is written or sent.
        """
        ...

    def start(self) -> int:
        """Starts the hosts, follows them to their end, and clears up."""
        ...


def require_client(program: str, remedy: str) -> str:
    """Returns the path of a program that a launcher calls."""
    found = shutil.which(program)
    if found is None:
        raise UserError(f"cannot find `{program}` on this machine's PATH: {remedy}")
    return found


def say(line: str) -> None:
    """Tells how a launch goes, beside what its hosts print."""
    print(line, file=sys.stderr, flush=True)
