"""Processes of a trial: they bear its mark, by which orphans are found wherever they went."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_MARK = "CHAOS_TRIAL"
_POLL_S = 0.05


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of a trial that was started, alone in its group of processes."""

    process: subprocess.Popen[bytes]
    output: Path  # the file with all that it prints

    @property
    def said(self) -> str:
        """What it has printed."""
        return self.output.read_text(errors="replace")

    @property
    def hears(self) -> bool:
        """Whether it heard signals when that changed last: Python has begun, and not yet ended."""
        heard = self.output.with_name(f"{self.output.name}.heard")
        return heard.exists() and heard.read_text() == "True"

    def code(self, within_s: float) -> int | None:
        """Waits until it has ended, and returns its exit code; None when it has not in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(within_s)
        return None

    def signal(self, number: signal.Signals, *, group: bool) -> None:
        """Sends a signal to it, or to its group; one that has ended hears none."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)


def start(
    words: Sequence[str], *, mark: Path, environment: Mapping[str, str], output: Path
) -> Command:
    """Starts a command that bears a mark; what it prints is appended to a file."""
    with output.open("ab") as file:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**environment, _MARK: str(mark)},
            cwd=mark,
            start_new_session=True,
        )
    return Command(process, output)


def marked(mark: Path) -> dict[int, str]:
    """Returns the processes that bear a mark and are no zombies: their commands by pid."""
    wanted, found = f"{_MARK}={mark}".encode(), {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                if words:
                    found[int(folder.name)] = words.decode(errors="replace").strip()
    return found


def left_after(mark: Path, seconds: float) -> dict[int, str]:
    """Waits until no process bears a mark, and returns those that still do after some seconds."""
    deadline = time.monotonic() + seconds
    while (found := marked(mark)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return found


def end_all(mark: Path) -> None:
    """Kills whatever bears a mark."""
    for pid in marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
