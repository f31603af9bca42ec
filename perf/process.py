"""Child processes: how long one took, and how much memory it needed."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]

SIMULATED: Final[Mapping[str, str]] = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
}
"""Environment in which the upstream framework sees the eight devices of the tour's mesh."""

FROM_SOURCE: Final[Mapping[str, str]] = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
"""Environment in which a process imports this checkout."""

_TAIL_LINES: Final = 3
_SHOWN: Final = 300
_RSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024


class ProbeFailed(Exception):
    """A figure could not be measured, because what it measures did not work."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A child process that ended well."""

    seconds: float  # wall time from its start until it was gone
    cpu_seconds: float  # time of the CPU that all its threads took, user and system
    peak_bytes: int
    """Its largest resident set, as the kernel counted it. A child starts as a copy of this
    process, so this is never below this process's own; import nothing heavy here."""
    output: str  # what it wrote to standard output; empty unless that was kept


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    keep_output: bool = False,
) -> Finished:
    """Runs a command to its end.

    Args:
        command: Program and arguments.
        environment: What is added to this process's environment.
        keep_output: Whether what it prints is kept, in files; otherwise it is discarded, so that
            a child which prints much pays for printing and not for who reads it.

    Raises:
        ProbeFailed: The command cannot be started, or its exit code is not 0.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = perf_counter()
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output if keep_output else subprocess.DEVNULL,
                stderr=errors if keep_output else subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            raise ProbeFailed(f"cannot start {command[0]}: {error}") from None
        # Only wait4 says what this one child needed; Popen must then be told that it is gone.
        _, status, usage = os.wait4(child.pid, 0)
        seconds = perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            reason = _tail(errors) if keep_output else "what it printed was discarded; run it"
            shown = textwrap.shorten(shlex.join(command), _SHOWN)
            raise ProbeFailed(f"{shown} ended with exit code {child.returncode}: {reason}")
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Finished(
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * _RSS_UNIT,
        output=text,
    )


def printed(command: Sequence[str], environment: Mapping[str, str] = FROM_SOURCE) -> Any:
    """Runs a command, and returns the JSON of the last line that it prints."""
    done = run(command, environment=environment, keep_output=True)
    return json.loads(done.output.splitlines()[-1])


def cli(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs a command of `orbax-bench`, whatever its exit code, and keeps what it prints."""
    command = [sys.executable, "-m", "orbax_bench_core.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def our_command(*arguments: str) -> list[str]:
    """Returns the `orbax-bench` command of the interpreter that runs this, with arguments.

    Raises:
        ProbeFailed: It is not installed.
    """
    script = Path(sys.executable).with_name("orbax-bench")
    if not script.exists():
        raise ProbeFailed(f"{script} does not exist; install the project with `make setup`")
    return [str(script), *arguments]


def _tail(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return " | ".join(lines[-_TAIL_LINES:]) or "it printed nothing"
