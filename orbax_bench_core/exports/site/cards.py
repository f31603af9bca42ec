"""Cards of runs: what their records say, kept beside a morning page.

A season of nights has thousands of records, and each would be read again for every page: on an
object store that takes minutes. A card is taken while the run and its tables are what they were.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.history import Measured, measured_in
from orbax_bench_core.baselines import FoundRun
from orbax_bench_core.files import MAX_BYTES, ResultModel, read_at_most, write_atomically
from orbax_bench_core.lineage import METRICS

if TYPE_CHECKING:
    from etils import epath

CARDS: Final = "site-cards.json.gz"

_VERSION: Final = 2
_GZIP: Final = 16 + zlib.MAX_WBITS


class _Card(ResultModel):
    """Facts from the records of a run, and the state of the run in which they were read."""

    state: str
    measured: tuple[Measured, ...]


class Cards:
    """Cards of the runs of a page, read once and written when the page is."""

    def __init__(self, folder: epath.Path | None) -> None:
        """Takes the cards of a folder; with None, or where they cannot be read, there are none."""
        self._folder = folder
        self._known = {} if folder is None else _read(folder / CARDS)
        self._used: dict[str, _Card] = {}

    def measured(self, run: FoundRun) -> Sequence[Measured]:
        """Returns what the records of a run say, from its card where that still holds."""
        state = _state(run)
        card = self._known.get(run.run_id)
        if state is None or card is None or card.state != state:
            card = _Card(state=state or "", measured=tuple(measured_in(run)))
        # Files that are no records are named on every page, so that they are looked for again.
        if state is not None and card.measured and not run.left_out:
            self._used[run.run_id] = card
        return card.measured

    def write(self) -> None:
        """Writes the cards of all runs that were asked for."""
        if self._folder is None or self._used == self._known:
            return
        runs = {run_id: card.model_dump(mode="json") for run_id, card in self._used.items()}
        text = json.dumps({"version": _VERSION, "runs": runs}, separators=(",", ":"))
        packed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
        write_atomically(self._folder / CARDS, packed)


def _read(path: epath.Path) -> dict[str, _Card]:
    try:
        found = json.loads(_unpacked(read_at_most(path)))
        if found["version"] != _VERSION:
            return {}
        return {run_id: _Card.model_validate(card) for run_id, card in found["runs"].items()}
    except (OSError, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}  # they only spare time


def _unpacked(data: bytes) -> bytes:
    """Returns what is packed, which may be a thousand times as large."""
    unpacking = zlib.decompressobj(wbits=_GZIP)
    text = unpacking.decompress(data, MAX_BYTES)
    if not unpacking.eof:
        raise ValueError("torn or too large")
    return text


def _state(run: FoundRun) -> str | None:
    """Returns what changes when records of a run do; None for one that goes on or has no tables."""
    if run.directory is None or run.info is None or run.info.status == "running":
        return None
    try:
        tables = read_at_most(run.directory.root / METRICS)
    except OSError:
        return None
    return hashlib.sha256(run.info.model_dump_json().encode() + tables).hexdigest()
