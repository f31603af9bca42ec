"""The `make` target that a test belongs to by its marker, and the programs that it may start."""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import pytest

ROOT_NEEDED: Final = frozenset(
    {"apt", "apt-get", "debootstrap", "docker", "dockerd", "mount", "umount"}
    | {"mpirun", "munged", "sbatch", "slurmctld", "slurmd", "srun"}
)
"""Programs that need root, an engine of Docker or Debian's archive: for `make nightly` alone."""

OUR_WORKER: Final = "orbax_bench_core.worker"
_SYSTEM: Final = ("/bin", "/sbin", "/usr", "/opt", "/snap")


class WrongTarget(pytest.fail.Exception):
    """A test starts a program that its `make` target does not have."""


def refuse(
    executable: object,
    arguments: object,
    environment: Mapping[Any, Any] | None,
    marks: Collection[str],
) -> None:
    """Fails a test that starts what its target cannot have.

    Args:
        executable: The program, as `subprocess.Popen` was given it.
        arguments: Its command line.
        environment: Its environment; None for that of the tests.
        marks: The test's markers.

    Raises:
        WrongTarget: It needs a marker that the test does not have.
    """
    if "nightly" in marks:
        return
    path = (os.environ if environment is None else environment).get("PATH")
    program = str(executable)
    found = shutil.which(program, path=path) or ""
    # A stand-in that a test made itself, or a program that is not there, harms nobody.
    if PurePath(program).name in ROOT_NEEDED and found.startswith(_SYSTEM):
        raise WrongTarget(f"{found} is not for `make test`: mark this test nightly")
    if "slow" not in marks and OUR_WORKER in _words(arguments):
        raise WrongTarget("a worker takes seconds to start: mark this test slow")


def _words(arguments: object) -> Iterator[str]:
    if isinstance(arguments, Sequence) and not isinstance(arguments, str | bytes):
        yield from map(str, arguments)
