"""Actor on a node of a Ray cluster, which starts the command of a host there.

Ray sends it to nodes that may not have this library: it needs the standard library and Ray alone.
"""

import os
import pathlib
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence


class RayHost:
    """One host: a process, and the lines that it prints."""

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._process: subprocess.Popen[str] | None = None

    def where(self) -> tuple[str, str, int]:
        """Returns the id of this node, its address, and a port there at which nothing listens."""
        import ray

        address = ray.util.get_node_ip_address()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family) as free:
            free.bind((address, 0))
            return ray.get_runtime_context().get_node_id(), address, free.getsockname()[1]

    def run(
        self, words: Sequence[str], sets: Mapping[str, str], folder: str
    ) -> Iterator[str | int]:
        """Runs the command, in `folder` where that exists; yields its lines, and its exit code."""
        kept = {
            name: text
            for name, text in os.environ.items()
            # Ray gives the libraries of each actor one thread per CPU that it asks for, and a
            # slice that somebody measured before must not be waited for.
            if name != "OMP_NUM_THREADS" and not name.startswith("MEGASCALE_")
        }
        self._process = subprocess.Popen(
            words,
            env={**kept, **sets},
            cwd=folder if pathlib.Path(folder).is_dir() else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            while line := lines.readline():  # Ray sends to a generator what a file does not take
                yield line
        yield self._process.wait()

    def stop(self, grace_s: float) -> None:
        """Ends the command, kindly at first."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
