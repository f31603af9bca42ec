"""Command that is started on every host, and what a launcher does with it."""

import dataclasses
import hashlib
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import NOTIFY, NOTIFY_STATE, TOKEN, without_cluster
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.launchers.tpus import SliceShape
from orbax_bench_core.python_command import python_command

_DIGITS: Final = 10
"""Digits of the hash in a name that is made here; 6 characters are left for the stem."""
LONGEST_NAME: Final = 20
"""Characters of a name that is made here; JobSet leaves 26, and 22 to one that Pathways makes."""
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
"""Name that is given; places on Kubernetes leave less room for what is added, and say so."""
_SIGNALLED: Final = 128
"""Exit codes above it are of processes that a signal has ended, as shells tell it."""

GRACE_S: Final = 30.0
"""Seconds for which hosts may end by themselves after process 0; they need 8 to miss it."""
PASSED_ON: Final = ("PYTHONPATH", "LD_LIBRARY_PATH", "JAX_PLATFORMS", "XLA_FLAGS")
"""Variables that hosts are given where they are set here."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Launch:
    """Command to start, the same on every host, and the hosts, which share the run directory."""

    name: str
    command: tuple[str, ...]  # begins with `orbax-bench`
    output_directory: str
    hosts: int = 1
    image: str | None = None
    tpu: SliceShape | None = None
    slices: int = 1
    noted: str = ""  # file in which a place of Google Cloud notes what it has created

    def __post_init__(self) -> None:
        """Refuses a name that is no label of the domain name system, with room for more."""
        if not _NAME.fullmatch(self.name):
            raise UserError(
                f"--name {self.name!r}: at most 40 lower case letters, digits and dashes, from a "
                "letter on"
            )

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
    def here(self) -> tuple[str, ...]:
        """The command by this Python's own entry point, for hosts that share its files."""
        return tuple(python_command("-m", "orbax_bench_core.cli", *self.command[1:]))

    def by(self, program: str | None) -> tuple[str, ...]:
        """The command by a program of the hosts, such as `orbax-bench`; None is this Python's."""
        return (*shlex.split(program), *self.command[1:]) if program else self.here


def job_name(*about: str, stem: str = "") -> str:
    """Returns a name for a job that is short enough for every place, and the same the next time."""
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()[:_DIGITS]
    room = LONGEST_NAME - len(f"ob--{digest}")
    return "-".join(filter(None, ["ob", stem[:room].strip("-"), digest]))


def suite_name(suite: str, directory: str) -> str:
    """Returns a name for the job of a suite and a run directory, with a hash where it is long."""
    stem = re.sub(r"[^a-z0-9]+", "-", suite.rpartition("/")[2].partition(".")[0].lower())
    whole = f"ob-{stem}".strip("-")
    return whole if len(whole) <= LONGEST_NAME else job_name(suite, directory, stem=stem)


class Launcher(Protocol):
    """One way to start a command on every host."""

    def shown(self) -> str:
        """Returns all that would be done, with secrets named and never shown; sends nothing."""
        ...

    def start(self) -> int:
        """Starts the hosts, follows them to their end, and clears up."""
        ...


def require_client(program: str, remedy: str) -> None:
    """Refuses a launch by a program that is not here.

    Raises:
        UserError: It is not on the PATH; the message ends with `remedy`.
    """
    if shutil.which(program) is None:
        raise UserError(f"cannot find `{program}` on this machine's PATH: {remedy}")


def call(words: Sequence[str]) -> int:
    """Runs a command that reads nothing, and returns its exit code."""
    return subprocess.run(words, stdin=subprocess.DEVNULL, check=False).returncode


def options(given: Mapping[str, str | None]) -> list[str]:
    """Returns the words of options that have a value."""
    return [word for flag, value in given.items() if value for word in (flag, value)]


def environment_of_hosts() -> dict[str, str]:
    """Returns this environment for what starts the hosts: a token of its own, and no other place.

    The token is made for one launch: anyone who has it can run commands on all hosts.
    """
    told = {name: os.environ[name] for name in (NOTIFY, NOTIFY_STATE) if name in os.environ}
    return without_cluster(os.environ) | told | {TOKEN: secrets.token_hex(32)}


def place_variables(head: str, host: int, hosts: int) -> dict[str, str]:
    """Returns the variables by which a host knows its place, where no cluster has others.

    Args:
        head: `host:port` of host 0.
        host: Index of the host.
        hosts: How many there are.
    """
    return {
        "ORBAX_BENCH_HEAD": head,
        "ORBAX_BENCH_HOST": str(host),
        "ORBAX_BENCH_NUM_HOSTS": str(hosts),
    }


def say(line: str) -> None:
    """Tells how a launch goes, next to what its hosts print."""
    print(line, file=sys.stderr, flush=True)


def echo(host: int, line: str) -> None:
    """Prints a line with the number of the host that printed it; that of host 0 as it is."""
    sys.stdout.write(f"host {host}: {line}" if host else line)
    sys.stdout.flush()


def code_of_run(code: int) -> int:
    """Returns the exit code of a run, where a launcher tells the largest of all hosts' codes.

    That of a host that was killed, or that has lost process 0, says only that the run is not
    complete.
    """
    if code == Exit.INTERRUPTED:
        return code
    return code if 0 <= code < _SIGNALLED and code != Exit.LOST_HEAD else int(Exit.FAILED)
