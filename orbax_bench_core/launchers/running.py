"""Processes that a launcher has started here: what they print, and their end."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.execute import NOTIFY, NOTIFY_STATE, TOKEN, without_cluster
from orbax_bench_core.exit_codes import Exit

_SIGNALLED: Final = 128
"""Exit codes above it are of processes that a signal has ended, as shells tell it."""

GRACE_S: Final = 30.0
"""Seconds for which hosts may end by themselves after process 0; they need 8 to miss it."""


PASSED_ON: Final = ("PYTHONPATH", "LD_LIBRARY_PATH", "JAX_PLATFORMS", "XLA_FLAGS")
"""Variables that hosts are given where they are set here."""


def environment_of_hosts() -> dict[str, str]:
    """Returns this environment for what starts the hosts: a token of its own, and no other place.

    The token is made for one launch: whoever has it can run commands on all hosts.
    """
    told = {name: os.environ[name] for name in (NOTIFY, NOTIFY_STATE) if name in os.environ}
    return without_cluster(os.environ) | told | {TOKEN: secrets.token_hex(32)}


def started(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Starts a command, with both its outputs in one pipe and nothing to read."""
    return subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


@contextlib.contextmanager
def ended(
    processes: Sequence[subprocess.Popen[str]],
) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Ends what still runs at the end, kindly at first."""
    try:
        yield processes
    finally:
        alive = [process for process in processes if process.poll() is None]
        for process in alive:
            process.terminate()
        for process in alive:
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def echoed(process: subprocess.Popen[str], shown: Callable[[str], str]) -> threading.Thread:
    """Prints what a process prints, line by line as `shown` gives it, in a thread."""
    lines = process.stdout
    assert lines is not None

    def copy() -> None:
        with lines:
            echo(lines, shown)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def echo(lines: Iterable[str], shown: Callable[[str], str]) -> None:
    """Prints lines as they come."""
    for line in lines:
        sys.stdout.write(shown(line))
        sys.stdout.flush()


def named_host(host: int, line: str) -> str:
    """Returns a line with the number of the host that printed it; that of host 0 as it is."""
    return f"host {host}: {line}" if host else line


def code_of_run(code: int) -> int:
    """Returns the exit code of a run, where a launcher tells the largest of all hosts' codes.

    That of a host that was killed, or that has lost process 0, says only that the run is not
    complete.
    """
    if code == Exit.INTERRUPTED:
        return code
    return code if 0 <= code < _SIGNALLED and code != Exit.LOST_HEAD else int(Exit.FAILED)
