"""Actor on a node of a Ray cluster, which starts the command of a host there.

Ray sends it to nodes that may not have this library, so it stands on its own.
"""

from __future__ import annotations

from typing import Any


def host_actor() -> type[Any]:
    """Returns the class of the actor.

    It is made inside a function because Ray then sends the class itself, not its name, and it
    uses nothing but the standard library and Ray.
    """
    import os
    import pathlib
    import queue
    import signal
    import socket
    import subprocess
    import threading

    class OrbaxBenchHost:
        """One host: a process, and the lines that it prints."""

        def __init__(self) -> None:
            self._process: subprocess.Popen[str] | None = None
            self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
            self._ended = False

        def where(self) -> tuple[str, str]:
            """Returns the address of this node, and its id."""
            import ray

            return ray.util.get_node_ip_address(), ray.get_runtime_context().get_node_id()

        def free_address(self) -> str:
            """Returns an address of this node at which nothing listens."""
            address = self.where()[0]
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with socket.socket(family) as free:
                free.bind((address, 0))
                port = free.getsockname()[1]
            return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

        def start(self, words: list[str], sets: dict[str, str], folder: str) -> None:
            """Starts the command, in the folder of the command that launched it if it is here."""
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
            threading.Thread(target=self._read, daemon=True).start()

        def said(self, within_s: float) -> tuple[list[str], int | None]:
            """Returns the lines since the last call, and the exit code after the last of them."""
            assert self._process is not None
            lines: list[str] = []
            try:
                line = self._lines.get(timeout=within_s)
                while line is not None:
                    lines.append(line)
                    line = self._lines.get_nowait()
                self._ended = True
            except queue.Empty:
                pass
            return lines, self._process.wait() if self._ended else None

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

        def _read(self) -> None:
            assert self._process is not None
            assert self._process.stdout is not None
            with self._process.stdout as lines:
                for line in lines:
                    self._lines.put(line)
            self._lines.put(None)

    return OrbaxBenchHost
