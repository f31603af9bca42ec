"""Record files: the records of a run, each in its place below `records/`."""

from __future__ import annotations

import abc
import collections
import concurrent.futures
import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import (
    create_exclusively,
    digest,
    is_abandoned,
    names_in,
    read_if_there,
    refuse_links,
    swap,
)
from orbax_bench_core.leases import Fence
from orbax_bench_core.records.record import Record, parsed_record
from orbax_bench_core.records.strays import (
    NO_PLACE,
    NO_POINT,
    TOO_LARGE,
    TORN,
    Place,
    Stray,
    misplaced,
    misplaced_stray,
    place_of,
    repeat_folder,
    stray_lines,
    unread_stray,
)
from orbax_bench_core.records.versions import other_version, refuse_other_version
from orbax_bench_core.sweep import SweepEntry

if TYPE_CHECKING:
    from etils import epath

_AT_ONCE: Final = 16
"""An object store answers many requests at once as fast as one."""
_AT_ONCE_HERE: Final = 4
"""Records that are held at once where a disk has them."""
MAX_RECORD_BYTES: Final = 64 * 2**20
"""Bytes of a record: one of 100,000 samples has 15 MB."""

Seen = Callable[[str, bytes | None], None]
"""Told of a file among the records: its path below the run directory, and what it holds; None of a
file or folder that is left unread, for no record has such a name."""


class RecordFiles(abc.ABC):
    """Records of a run on storage.

    Attributes:
        root: The run directory, local or gs://.
        fence: The lease under which this process measures here; None while it only reads.
    """

    def __init__(self, root: epath.Path) -> None:
        self.root = root
        self.fence: Fence | None = None
        self._folder = str(root)
        self._strays: dict[str, Stray] = {}
        self._abandoned: set[str] = set()

    @property
    @abc.abstractmethod
    def run_id(self) -> str:
        """Id of the run, which each of its records has."""

    def read_record(
        self, point: SweepEntry, repeat: int, *, warmup: bool = False, host: int = 0
    ) -> Record | None:
        """Returns the record of one repeat; None when it has none, or one that is not its own.

        A torn record, and one of another point, repeat, host or run, is as if there were none.
        """
        place = Place(point.id, repeat, warmup, host)
        path = self._path(place)
        data = self._read(path)
        if data is None:
            return None
        refuse_other_version(data, str(path))
        record = parsed_record(data)
        return None if record is None or misplaced(record, place, self.run_id) else record

    def seal(self, point: SweepEntry, repeat: int, *, host: int = 0) -> str:
        """Returns the SHA-256 of a record, by which a new try takes its place; empty for none."""
        data = self._read(self._path(Place(point.id, repeat, False, host)))
        return "" if data is None else digest(data)

    def write_record(self, record: Record, *, fence: str = "", replaces: str = "") -> Record:
        """Puts the record of one repeat in its place.

        A record that passed or was skipped is final. One that failed is replaced. So is one that is
        torn, which is kept beside it under a name that readers ignore, and one that is not of its
        place, under a lease alone.
        """
        place = Place(record.point_id, record.repeat, record.warmup, record.host)
        path = self._path(place)
        refuse_links(path.parent, self.root)
        record, data = _readable(record)
        right = Fence.parse(fence) if fence else self.fence
        while True:
            if right is not None:
                right.check(self.root)
            if create_exclusively(path, data):
                return record
            before = read_if_there(path, MAX_RECORD_BYTES)
            if before is None:
                continue
            there = parsed_record(before)
            wrong = "" if there is None else misplaced(there, place, record.run_id)
            torn = there is None and not other_version(before)
            if torn or (wrong and right is not None):
                create_exclusively(_aside(path, before), before)
            else:
                final = there is not None and there.finished and digest(before) != replaces
                kept = wrong or other_version(before) or ("final" if final else "")
                if kept:
                    raise AlreadyRecorded(f"{path} is {kept}")
            if swap(path, before, data):
                return record

    def check_versions(
        self, entries: Iterable[SweepEntry], *, say: Callable[[str], None] | None = None
    ) -> None:
        """Checks that every record of some points and pairs is of a schema version that is read."""
        paths = [
            self._path(place)
            for entry in entries
            for place, _ in self._files(entry.id)
            if place is not None
        ]
        at_once = _AT_ONCE if "://" in self._folder else _AT_ONCE_HERE
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for path, aside in zip(paths, pool.map(self._checked, paths), strict=True):
                if say is not None and aside:
                    say(
                        f"{path} is torn: its repeat is measured again, and the file kept beside "
                        f"it as {aside}"
                    )

    def _checked(self, path: epath.Path) -> str:
        """Returns the name under which a record is kept if it is torn; empty for a whole one."""
        data = self._read(path)
        if data is None:
            return ""
        refuse_other_version(data, str(path))
        return _aside(path, data).name if _ends_early(data) else ""

    def next_warmup(self, point: SweepEntry) -> int:
        """Returns the first warm-up index of `point` after all that have a record."""
        made = [place.repeat for place, _ in self._files(point.id) if place and place.warmup]
        return max(made, default=-1) + 1

    def lost(self, places: Iterable[tuple[str, int]]) -> list[str]:
        """Returns the folders of those of some repeats, by point and index, without a record."""
        indices: dict[str, set[int]] = {}
        for point_id, index in places:
            indices.setdefault(point_id, set()).add(index)
        found = []
        for point_id, made in indices.items():
            there = {p.repeat for p, _ in self._files(point_id) if p and not p.warmup}
            found += [
                f"records/{point_id}/{repeat_folder(index, False)}"
                for index in sorted(made - there)
            ]
        return found

    def has_repeats(self, point: SweepEntry) -> bool:
        """Returns whether a repeat of a point or pair has a record; warm-ups do not count."""
        return any(not place.warmup for place, _ in self._files(point.id) if place is not None)

    @property
    def strays(self) -> tuple[str, ...]:
        """Files among the records that are no records of this run, a line each, as far as read.

        Whoever reads records leaves them out; `by_point` and `records` meet all of them.
        """
        found = [self._strays[path] for path in sorted(self._strays)]
        return stray_lines(found, self.root)

    def point_records(self, point: SweepEntry) -> list[Record]:
        """Returns every record of one point: warm-ups, then repeats, by host.

        What is not what its place says is left out, and among `strays`.
        """
        return list(self._records_of(point.id, self.run_id))

    def _records_of(self, point_id: str, run_id: str, seen: Seen | None = None) -> Iterator[Record]:
        self._forget(point_id)
        places = []
        for place, path in self._files(point_id):
            if place is None:
                self._note(path, NO_PLACE)
                if seen is not None:
                    seen(path, None)
            else:
                places.append(place)
        for place in sorted(places, key=lambda place: (not place.warmup, place.repeat, place.host)):
            path = place.path
            try:
                data = read_if_there(self._under(path), MAX_RECORD_BYTES)
            except OSError as error:
                if error.errno != errno.EFBIG:
                    raise unreadable(self._under(path), error) from None
                self._note(path, TOO_LARGE)
                if seen is not None:
                    seen(path, None)
                continue
            if data is None:
                continue
            if seen is not None:
                seen(path, data)
            record = parsed_record(data)
            if record is None:
                unread = other_version(data)
                self._note(path, unread_stray(unread) if unread else TORN)
            elif wrong := misplaced(record, place, run_id):
                self._note(path, misplaced_stray(wrong))
            else:
                yield record

    def _note_unknown(self, points: Iterable[SweepEntry]) -> None:
        """Takes the folders of points that the run does not have for strays."""
        known = {point.id for point in points}
        for name in self._names(self._under("records")):
            if name not in known and not name.startswith("."):
                self._note(f"records/{name}", NO_POINT)

    def _files(self, point_id: str) -> Iterator[tuple[Place | None, str]]:
        """Yields what lies among the records of a point: its place, if it is one, and its path."""
        folder = f"records/{point_id}"
        for repeat in self._names(self._under(folder)):
            if repeat.startswith("."):
                continue
            if place_of(point_id, repeat, "host_0.json") is None:
                yield None, f"{folder}/{repeat}"
                continue
            names = self._names_or_none(self._under(f"{folder}/{repeat}"))
            if names is None:
                yield None, f"{folder}/{repeat}"
                continue
            for name in names:
                if not name.startswith("."):
                    yield place_of(point_id, repeat, name), f"{folder}/{repeat}/{name}"
                elif name.endswith(".tmp"):
                    self._abandoned.add(f"{folder}/{repeat}/{name}")

    def clear_abandoned(self, entries: Iterable[SweepEntry] = ()) -> None:
        """Deletes what writers that were killed have left among the records, as far as read."""
        if "://" in str(self.root):  # an object store shows no object that is not complete
            return
        for entry in entries:
            collections.deque(self._files(entry.id), maxlen=0)
        for place in self._abandoned:
            path = Path(self.root / place)
            with contextlib.suppress(OSError):  # it lies behind a link
                refuse_links(path, self.root)
                if is_abandoned(path):
                    path.unlink(missing_ok=True)
        self._abandoned.clear()

    def _forget(self, point_id: str) -> None:
        """Forgets what was met among the records of a point, which is about to be read again."""
        for path in [path for path in self._strays if path.startswith(f"records/{point_id}/")]:
            del self._strays[path]

    def _note(self, path: str, reason: str) -> None:
        self._strays[path] = Stray(path, reason)

    def _path(self, place: Place) -> epath.Path:
        return self.root / place.path

    def _under(self, path: str) -> str:
        """Returns the path of a file in the run directory as text, which takes hardly any time."""
        return f"{self._folder}/{path}"

    def _read(self, path: epath.Path | str, most: int = MAX_RECORD_BYTES) -> bytes | None:
        """Returns what a file holds, or None when it is not there."""
        try:
            return read_if_there(path, most)
        except OSError as error:
            raise unreadable(path, error) from None

    def _names(self, folder: epath.Path | str) -> list[str]:
        """Returns the names in a folder; none when it is not there."""
        found = self._names_or_none(folder)
        if found is None:
            raise unreadable(folder, NotADirectoryError(errno.ENOTDIR, "Not a folder"))
        return found

    def _names_or_none(self, folder: epath.Path | str) -> list[str] | None:
        """Returns the names in a folder; None when what is there is no folder."""
        try:
            return names_in(folder)
        except NotADirectoryError:
            return None
        except OSError as error:
            raise unreadable(folder, error) from None


def _readable(record: Record) -> tuple[Record, bytes]:
    """Returns a record and its JSON; where nobody could read that, a failed one that says why."""
    why = "a file of records may have no more"
    try:
        data = record.model_dump_json(indent=1).encode()
        if len(data) <= MAX_RECORD_BYTES:
            return record, data
    except ValueError as error:  # halves of characters, in a name say
        why = f"they cannot be written: {error}"
    record = record.without_content(why)
    return record, record.model_dump_json(indent=1).encode()


class AlreadyRecorded(Exception):
    """A repeat has a final record, which nothing replaces."""


def _aside(path: epath.Path, data: bytes) -> epath.Path:
    """Returns where that is kept which a record takes the place of."""
    return path.with_name(f".{path.name}.{digest(data)[:12]}")


def _ends_early(data: bytes) -> bool:
    """Returns whether a record was not written to its end; parsing all of them takes too long."""
    return not data.rstrip().endswith(b"}")


def unreadable(path: epath.Path | str, error: OSError) -> UserError:
    """Returns what to tell of a file that is there, perhaps, and cannot be read."""
    return UserError(
        Problem(
            f"cannot be read ({error}), which does not mean that it is missing: nothing is "
            "measured in its place. Mend that, then run the same command again",
            file=str(path),
        )
    )
