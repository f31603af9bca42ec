"""The file of one process: whole lines of JSON, appended, and readable after a kill at any moment.

Object stores cannot append: there a process rewrites its last part until that has a mebibyte, and
begins another.
"""

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orbax_bench_core.recorder.processes import name_of

FORMAT: Final = 1
"""Version of the format. A reader takes lines of its own version, and knows older ones."""
METADATA_WAIT: Final = "/orbax-bench/metadata_directory_wait_secs"
SIGNAL_WAIT: Final = "/orbax-bench/directories_wait_secs"
"""Events of our own: a thread that writes waits for directories of the primary host.

The former lies within the time of the arrays that Orbax tells as that of a worker, both in that of
a commit.
"""
OWN_TIMES: Final = {
    "/jax/orbax/write/worker/total_duration_secs": (METADATA_WAIT,),
    "/jax/checkpoint/write/async/commit_duration_sec": (METADATA_WAIT, SIGNAL_WAIT),
    "/jax/orbax/write/background_ts_duration_secs": (METADATA_WAIT, SIGNAL_WAIT),
}
"""Events that time what a host writes itself, with the waits for the primary host in them."""

_PART_BYTES: Final = 2**20
"""Bytes after which a part is ended: in a bucket each write sends its whole part again."""
_MOST_CHARACTERS: Final = 500
_SECRET: Final = re.compile(r"(?<=://)[^\s/@]+@|(?<=[?&])([\w.-]*=)[^\s&\"']+")


def plain(text: object) -> str:
    """Returns the text of others without credentials in addresses, and bounded."""
    return _SECRET.sub(lambda found: f"{found[1] or ''}***", str(text)[:_MOST_CHARACTERS])


class LinesFile:
    """Lines of one process, in `DIR/host_<index>/<UTC time>-<machine>-<process id>.jsonl`."""

    def __init__(self, directory: str, host: int) -> None:
        """Begins a file; raises OSError where there can be none."""
        self._is_remote = "://" in directory
        name = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}{name_of(os.getpid())}"
        self._stem = f"{directory.rstrip('/')}/host_{host:05d}/{name}"
        self._part, self._parts = b"", 0
        self._left = b""  # of a line that was written in part, as on a full disk
        self._file = -1
        if not self._is_remote:
            os.makedirs(os.path.dirname(self._stem), exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(f"{self._stem}.jsonl", flags, 0o644)

    def write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Appends lines of JSON.

        Raises:
            OSError: Not all was written; the next call writes what is left as well.
        """
        rows = (json.dumps(line, separators=(",", ":"), default=str) for line in lines)
        data = self._left + "".join(f"{row}\n" for row in rows).encode()
        if self._is_remote:
            self._rewrite(data)
            return
        self._left = data  # also where the write raises
        done = os.write(self._file, data)
        if done < len(data):
            # The piece of a line ends here, so that nothing is glued to it.
            self._left = b"\n" + data[data.rfind(b"\n", 0, done) + 1 :]
            raise OSError(f"only {done} of {len(data)} bytes were written: is the disk full?")
        self._left = b""

    def _rewrite(self, data: bytes) -> None:
        from etils import epath  # Orbax brings it, and reads buckets by it

        if len(self._part) > _PART_BYTES:
            self._part, self._parts = b"", self._parts + 1
        self._left = data
        part = epath.Path(f"{self._stem}.part_{self._parts:05d}.jsonl")
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(self._part + data)
        self._part, self._left = self._part + data, b""
