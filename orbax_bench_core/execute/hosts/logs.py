"""Logs of workers, from which credentials are taken out when their worker has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from orbax_bench_core.errors import redacted
from orbax_bench_core.files import atomic_file

_PIECE: Final = 2**20
"""Bytes of a line that are read at once: a line may be as long as its file."""


def redact_log(file: Path, start: int) -> None:
    """Takes credentials in addresses out of what a worker has printed, once it has ended.

    Libraries print the address that failed, with its signature. A file without any is left as it
    is, and one that cannot be written again too: a log is no reason for a run to fail.

    Args:
        file: The log.
        start: Where that worker's lines begin.
    """
    with contextlib.suppress(OSError), file.open("rb") as log:
        log.seek(start)
        if all(_without(piece) == piece for piece in _pieces(log)):
            return
        log.seek(0)
        with atomic_file(file, durable=False) as again:
            again.writelines(map(_without, _pieces(log)))


def _pieces(log: IO[bytes]) -> Iterator[bytes]:
    while piece := log.readline(_PIECE):
        yield piece


def _without(piece: bytes) -> bytes:
    if b"://" not in piece:
        return piece
    return redacted(piece.decode(errors="surrogateescape")).encode(errors="surrogateescape")
