"""Machines that the `mpirun` of Open MPI reaches; nothing else of MPI is used."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from typing import Final

from orbax_bench_core.config import ConfigModel
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import TOKEN
from orbax_bench_core.files import read_at_most
from orbax_bench_core.launchers.launch import Launch, require_client
from orbax_bench_core.launchers.running import (
    PASSED_ON,
    code_of_run,
    echoed,
    ended,
    environment_of_hosts,
    named_host,
    started,
)

_HEAD_HOST: Final = "ORBAX_BENCH_HEAD_HOST"
_PARAMETERS: Final = ("OMPI_MCA_", "OMPI_ALLOW_", "PRTE_MCA_", "PRTE_ALLOW_")
_NO_TERMINAL: Final = {"TERM": "dumb"}
"""Open MPI gives each process what looks like a terminal, on which progress would be drawn."""
_ONE_PER_NODE: Final = "ppr:1:node"
_REMEDY: Final = (
    "run this where Open MPI is installed, or elsewhere with another --on; Debian has it in the "
    "package openmpi-bin"
)
_TAG: Final = re.compile(r"\[[^\]]*\b(\d+)\]<std(?:out|err)>: ?")
"""Prefix of a line by `--tag-output`: `[1,RANK]<stdout>:`, with more before it in release 5."""


class MpiSettings(ConfigModel):
    """Settings of `mpirun`.

    Attributes:
        hosts: Names of the machines; the first is that of process 0.
        hostfile: A file of such names, in place of `hosts`.
        head: Name or address at which the other machines reach the first one; by default its name
            among them.
        map_by: How processes are put on machines; `slot` takes `hosts` such as `[localhost:2]`.
        variables: More environment variables to pass on. Open MPI passes on none by itself.
        mpirun: More options of `mpirun`.
        program: What starts orbax-bench on the machines; by default the Python of this command.
    """

    hosts: tuple[str, ...] = ()
    hostfile: str | None = None
    head: str | None = None
    map_by: str = _ONE_PER_NODE
    variables: tuple[str, ...] = ()
    mpirun: tuple[str, ...] = ()
    program: str | None = None


class Mpi:
    """Starts the command on each machine by one `mpirun`, and ends with it.

    Open MPI ends all when one of them ends badly: the same line again goes on from the records.
    """

    def __init__(self, launch: Launch, settings: MpiSettings) -> None:
        """Keeps what is to be started.

        Raises:
            UserError: It is not said where process 0 is, the number of machines is not that of
                hosts, or an image is given.
        """
        if launch.image is not None:
            raise UserError("--image: mpirun starts processes, not containers; leave it out")
        if settings.hosts and settings.hostfile is not None:
            raise UserError("--set hosts=... and --set hostfile=...: give one of them")
        if settings.map_by == _ONE_PER_NODE and len(settings.hosts) not in (0, launch.hosts):
            raise UserError(
                f"--hosts {launch.hosts}: --set hosts names {len(settings.hosts)} machines, and "
                "each is one host"
            )
        self._launch = launch
        self._settings = settings
        self._head = settings.head or _first(settings)

    def shown(self) -> str:
        """Returns the command line and the variables that it takes."""
        given = {_HEAD_HOST: self._head, **_NO_TERMINAL}
        variables = " ".join(f"{name}={shlex.quote(text)}" for name, text in given.items())
        words = shlex.join(self._words(dict(os.environ)))
        return f"# {TOKEN} is made anew\n{variables} {words}"

    def start(self) -> int:
        """Starts all, passes on what they print, and waits for them.

        Returns:
            The exit code of the run.

        Raises:
            UserError: There is no `mpirun` here.
        """
        require_client("mpirun", _REMEDY)
        # Parameters of Open MPI and its leave to run as root are variables, too.
        own = {name: text for name, text in os.environ.items() if name.startswith(_PARAMETERS)}
        given = {_HEAD_HOST: self._head, **_NO_TERMINAL}
        environment = own | environment_of_hosts() | given
        process = started(self._words(environment), environment)
        with ended([process]):
            echo = echoed(process, _untagged)
            code = process.wait()
            echo.join()
        return code_of_run(code)

    def _words(self, environment: dict[str, str]) -> tuple[str, ...]:
        settings, launch = self._settings, self._launch
        passed = [name for name in PASSED_ON if name in environment]
        # By name alone: a value on the command line is there for everybody to read.
        names = dict.fromkeys((TOKEN, _HEAD_HOST, *_NO_TERMINAL, *passed, *settings.variables))
        variables = (word for name in names for word in ("-x", name))
        return (
            *("mpirun", "-n", str(launch.hosts), *self._machines(), "--map-by", settings.map_by),
            # Each host has all of its machine, where mpirun would give it one core.
            *("--bind-to", "none", "--tag-output", *variables, *settings.mpirun),
            *launch.by(settings.program),
        )

    def _machines(self) -> Iterator[str]:
        if self._settings.hosts:
            yield from ("--host", ",".join(self._settings.hosts))
        elif self._settings.hostfile is not None:
            yield from ("--hostfile", self._settings.hostfile)


def _first(settings: MpiSettings) -> str:
    """Returns the name of the first machine.

    Raises:
        UserError: None is named.
    """
    lines: tuple[str, ...] = settings.hosts
    if settings.hostfile is not None:
        try:
            lines = tuple(read_at_most(settings.hostfile).decode(errors="replace").splitlines())
        except OSError as error:
            raise UserError(f"--set hostfile={settings.hostfile}: {error.strerror}") from None
    names = (re.split(r"[\s:]", line.strip())[0] for line in lines if line.strip()[:1] != "#")
    found: str | None = next(filter(None, names), None)
    if found is None:
        raise UserError(
            "nothing says on which machine process 0 is: give --set hosts='[a, b]', --set "
            "hostfile=FILE or, where a batch system has chosen the machines, --set head=NAME"
        )
    return found


def _untagged(line: str) -> str:
    """Returns a line as people see it, with the number of its host in place of Open MPI's tag."""
    tag = _TAG.match(line)
    return line if tag is None else named_host(int(tag[1]), line[tag.end() :])
