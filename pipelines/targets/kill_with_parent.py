"""Leash of a step: all that the step has started ends with the process that runs its pipeline.

    python kill_with_parent.py OWNER COMMAND...

A process that is killed has no time to end others, and kfp starts a step below a shell, so that the
kernel would tell only that one. Run as a file, so that it imports nothing of ours.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

POSSIBLE = hasattr(os, "pidfd_open")
"""Whether the kernel tells of the end of a process that is no child."""
_LOST = 1


def leashed(command: Sequence[str]) -> list[str]:
    """Returns the command that runs another one that ends with this process."""
    if not POSSIBLE:
        return list(command)
    return [sys.executable, "-I", __file__, str(os.getpid()), *command]


def hold(owner: int, command: Sequence[str]) -> int:
    """Runs a command while its owner lives, and returns its exit code.

    Args:
        owner: Process id of the one that started this process.
        command: What to run, and its arguments.
    """
    for told in (signal.SIGINT, signal.SIGTERM):
        # The step hears it as well, and has time to end. Ignored, it would be ignored there too.
        signal.signal(told, lambda _signal, _frame: None)
    with subprocess.Popen(command) as step:
        with contextlib.ExitStack() as files:
            looked_at = select.poll()
            for process in (owner, step.pid):
                with contextlib.suppress(ProcessLookupError):
                    descriptor = os.pidfd_open(process)
                    files.callback(os.close, descriptor)
                    looked_at.register(descriptor, select.POLLIN)
            if os.getppid() == owner:
                looked_at.poll()
            if os.getppid() == owner:
                return step.wait()
        _end(step.pid)
    return _LOST


def _end(step: int) -> None:
    """Kills a step and all that it has started; workers end with the step that started them."""
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(step)
        for process in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


if __name__ == "__main__":
    sys.exit(hold(int(sys.argv[1]), sys.argv[2:]))
