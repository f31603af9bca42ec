"""Cards of a morning page: facts from the records of each run, so that these are read once."""

import glob
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Final, Self

from orbax_bench_core.analysis.history import PastOperation, measured_in
from orbax_bench_core.baselines import FoundRun
from orbax_bench_core.files import (
    MAX_BYTES,
    AnyPath,
    ResultModel,
    place,
    read_at_most,
    write_atomically,
)
from orbax_bench_core.lineage import METRICS

CARDS: Final = "site-cards.json.gz"

_VERSION: Final = 3
_GZIP: Final = 16 + zlib.MAX_WBITS


class _Card(ResultModel):
    """Facts from the records of a run, and the state of the run in which they were read."""

    state: str
    measured: tuple[PastOperation, ...]


class Cards:
    """Cards of the runs of a page, read once and written when the page is."""

    def __init__(self, folder: AnyPath | None) -> None:
        """Takes the cards of a folder; with None, or where they cannot be read, there are none."""
        self._folder = folder
        self._known = {} if folder is None else _read(folder / CARDS)
        self._used: dict[str, _Card] = {}

    @classmethod
    def beside(cls, places: Iterable[str]) -> Self:
        """Returns the cards of the pages of some folders, or of patterns of what is in them."""
        cards = cls(None)
        for given in places:
            folder = given.removesuffix("/*")
            if folder and not glob.has_magic(folder):
                cards._known |= _read(place(folder) / CARDS)
        return cards

    def measured(self, run: FoundRun) -> Sequence[PastOperation]:
        """Returns the facts of a run's records, from its card if that still holds."""
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


def _read(path: AnyPath) -> dict[str, _Card]:
    try:
        unpacking = zlib.decompressobj(wbits=_GZIP)
        found = json.loads(unpacking.decompress(read_at_most(path), MAX_BYTES))  # may be 1000 x
        if not unpacking.eof or found["version"] != _VERSION:
            return {}
        return {run_id: _Card.model_validate(card) for run_id, card in found["runs"].items()}
    except (OSError, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}  # they only spare time


def _state(run: FoundRun) -> str | None:
    """Returns a stamp that changes when a run's records do, or None without tables or an end."""
    if run.directory is None or run.info is None or run.info.status == "running":
        return None
    try:
        tables = read_at_most(run.directory.root / METRICS)
    except OSError:
        return None
    return hashlib.sha256(run.info.model_dump_json().encode() + tables).hexdigest()
