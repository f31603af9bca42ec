"""Answers of programs that may be no Python: bounded in size, and in the time of a first word."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Final

FIRST_S: Final = 4.0
"""Seconds until the first word: a Python says one before it imports anything."""
_MOST_BYTES: Final = 2**20
_CHUNK: Final = 2**16


class NoAnswer(Exception):
    """A program that does not answer as a Python does."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """Output of a program until its end.

    Attributes:
        code: Its exit code.
        out: Its standard output.
        err: Its standard error.
    """

    code: int
    out: str
    err: str


def answer_of(
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    first_s: float = FIRST_S,
    timeout_s: float,
) -> Answer:
    """Runs a program that reads nothing, and returns what it says."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **variables},
        start_new_session=True,  # so that what it started ends with it
    )
    try:
        with process:
            try:
                return _heard(process, first_s, timeout_s)
            finally:
                _end(process)
    except ValueError as error:
        raise NoAnswer(str(error)) from None


def _heard(process: subprocess.Popen[bytes], first_s: float, timeout_s: float) -> Answer:
    """Returns what a process says."""
    assert process.stdout is not None
    assert process.stderr is not None
    began = time.monotonic()
    said = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as open_ones:
        for stream in said:
            open_ones.register(stream, selectors.EVENT_READ)
        while open_ones.get_map():
            limit = timeout_s if any(said.values()) else first_s
            ready = open_ones.select(max(0.0, began + limit - time.monotonic()))
            if not ready:
                what = "does not end" if any(said.values()) else "says nothing"
                raise ValueError(f"it {what} within {limit:g} s")
            for key, _ in ready:
                stream = next(each for each in said if each.fileno() == key.fd)
                data = os.read(key.fd, _CHUNK)
                said[stream] += data
                if not data:
                    open_ones.unregister(stream)
            if sum(map(len, said.values())) > _MOST_BYTES:
                raise ValueError(f"it says more than {_MOST_BYTES:,} bytes")
    try:
        code = process.wait(max(0.1, began + timeout_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ValueError(f"it does not end within {timeout_s:g} s") from None
    out, err = (bytes(data).decode(errors="replace") for data in said.values())
    return Answer(code, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that has not ended, and all that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
