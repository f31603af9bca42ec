"""Reading of the records of a run: the files of each point, and those that are left out."""

import dataclasses
import errno
import functools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import AnyPath, digest, names_in, read_if_there
from orbax_bench_core.records.record import Record, parse_record
from orbax_bench_core.records.repeats import Repeat, repeats_of
from orbax_bench_core.records.versions import OtherVersion
from orbax_bench_core.sweep import SweepEntry, sides

MAX_RECORD_BYTES: Final = 64 * 2**20
"""Bytes of a record: one of 100,000 samples has 15 MB."""
MOST_NAMED: Final = 10
"""Files left out that are named one by one."""

_AWAY: Final = "move it out of the run directory"
_NO_PLACE: Final = f"no place of a record has this name: {_AWAY}"
_NO_POINT: Final = f"no point of this run has this id: {_AWAY}"
_TOO_LARGE: Final = f"larger than 64 MiB, which no record is: {_AWAY}"
_KEPT_ASIDE: Final = f"{_AWAY}, or resume the run, which keeps it aside if it is in the way"
_TORN: Final = f"torn: not readable: {_AWAY}, or resume the run"

_REPEAT: Final = re.compile(r"(?P<kind>repeat|warmup)_(?P<index>0|[1-9]\d*)")
_HOST: Final = re.compile(r"host_(?P<host>0|[1-9]\d*)\.json")


class RecordPlace(NamedTuple):
    """Place of a record: its point, its index among repeats or warm-ups, and its host."""

    point_id: str
    repeat: int
    warmup: bool
    host: int

    @property
    def path(self) -> str:
        """Path of the record below the run directory."""
        folder = repeat_folder(self.repeat, self.warmup)
        return f"records/{self.point_id}/{folder}/host_{self.host}.json"


class Stray(NamedTuple):
    """A file or folder below the run directory that is left out, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclasses.dataclass(frozen=True)
class PointRecords:
    """All that is recorded of a point or pair."""

    entry: SweepEntry  # the point, or the pair
    records: tuple[Record, ...]  # its records: warm-ups, then repeats, by host
    left_out: tuple[Stray, ...]  # files among them that are no records of the run

    @functools.cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """Its repeats over all hosts, in the order of the records."""
        return tuple(repeats_of(self.records))

    @property
    def by_arm(self) -> list[Repeat]:
        """Its repeats arm by arm, warm-ups before the others."""
        return [r for arm in sides(self.entry) for r in self.repeats if r.series.arm == arm]


def read_file(path: AnyPath | str, most: int = MAX_RECORD_BYTES) -> bytes | None:
    """Reads a file of at most so many bytes; None if it is missing.

    Raises:
        UserError: It may exist and cannot be read, or is larger.
    """
    try:
        return read_if_there(path, most)
    except OSError as error:
        raise unreadable(path, error) from None


def aside_path(path: AnyPath, data: bytes) -> AnyPath:
    """Returns the path at which `data` is kept once a record takes its place at `path`."""
    return path.with_name(f".{path.name}.{digest(data)[:12]}")


def read_point(root: AnyPath, entry: SweepEntry, run_id: str) -> PointRecords:
    """Reads all records of a point or pair; what is not what its place says is left out.

    Left out, each with its reason, are files whose name is no place of a record, torn and too large
    ones, those of another schema version, and records of another point, repeat, host or run.

    Args:
        root: The run directory, local or gs://.
        entry: The point or pair.
        run_id: The run that records have to be of.

    Returns:
        Records in the order of their repeats, warm-ups last, and what was left out.

    Raises:
        UserError: A record is there and cannot be read, such as without permission.
    """
    folder, records, places, left_out = str(root), [], [], []
    for place, path in _files(root, entry.id):
        if place is not None:
            places.append(place)
        else:
            left_out.append(Stray(path, _NO_PLACE))
    for place in sorted(places, key=lambda place: (not place.warmup, place.repeat, place.host)):
        path = place.path
        try:
            data = read_if_there(f"{folder}/{path}", MAX_RECORD_BYTES)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise unreadable(f"{folder}/{path}", error) from None
            left_out.append(Stray(path, _TOO_LARGE))
            continue
        if data is None:
            continue
        try:
            record = parse_record(data)
        except OtherVersion as other:
            left_out.append(Stray(path, f"{other}, or {_AWAY}"))
            continue
        if record is None:
            left_out.append(Stray(path, _TORN))
        elif wrong := misplaced(record, place, run_id):
            left_out.append(Stray(path, f"{wrong}: {_KEPT_ASIDE}"))
        else:
            records.append(record)
    return PointRecords(entry, tuple(records), tuple(left_out))


def unknown_points(root: AnyPath, known: Collection[str]) -> tuple[Stray, ...]:
    """Returns the folders among the records of points that the run does not have."""
    return tuple(
        Stray(f"records/{name}", _NO_POINT)
        for name in _names(f"{root}/records")
        if name not in known and not name.startswith(".")
    )


def _files(root: AnyPath, point_id: str) -> Iterator[tuple[RecordPlace | None, str]]:
    """Yields what lies among the records of a point: its place, if it is one, and its path."""
    start, folder = str(root), f"records/{point_id}"
    for repeat in _names(f"{start}/{folder}"):
        if repeat.startswith("."):
            continue
        names = None
        if _place_of(point_id, repeat, "host_0.json") is not None:
            names = _names_or_none(f"{start}/{folder}/{repeat}")
        if names is None:
            yield None, f"{folder}/{repeat}"
            continue
        for name in names:
            if not name.startswith("."):
                yield _place_of(point_id, repeat, name), f"{folder}/{repeat}/{name}"


def places_of(root: AnyPath, point_id: str) -> list[RecordPlace]:
    """Returns the places of records of a point or pair that have a file."""
    return [place for place, _ in _files(root, point_id) if place is not None]


def _names(folder: str) -> list[str]:
    """Returns the names in a folder; none when it is not there."""
    found = _names_or_none(folder)
    if found is None:
        raise unreadable(folder, NotADirectoryError(errno.ENOTDIR, "Not a folder"))
    return found


def _names_or_none(folder: str) -> list[str] | None:
    """Returns the names in a folder; None when what is there is no folder."""
    try:
        return names_in(folder)
    except NotADirectoryError:
        return None
    except OSError as error:
        raise unreadable(folder, error) from None


def repeat_folder(repeat: int, warmup: bool) -> str:
    """Returns the name of the folder of a repeat, for its records and for its checkpoint data."""
    return f"{'warmup' if warmup else 'repeat'}_{repeat}"


def _place_of(point_id: str, folder: str, file: str) -> RecordPlace | None:
    """Returns the place that names stand for, or None when no record has such names."""
    repeat, host = _REPEAT.fullmatch(folder), _HOST.fullmatch(file)
    if repeat is None or host is None:
        return None
    return RecordPlace(
        point_id, int(repeat["index"]), repeat["kind"] == "warmup", int(host["host"])
    )


def misplaced(record: Record, place: RecordPlace, run_id: str) -> str:
    """Returns the fields of a record that contradict its place; empty if they agree.

    Args:
        record: What the file holds.
        place: Where the file lies.
        run_id: Id of the run in whose directory it lies.
    """
    said = (record.point_id, record.repeat, record.warmup, record.host, record.run_id)
    if said == (*place, run_id) and record.host < record.num_hosts:
        return ""
    pairs = (
        ("point", record.point_id, place.point_id),
        ("repeat", _repeat(record.repeat, record.warmup), _repeat(place.repeat, place.warmup)),
        ("host", record.host, place.host),
        ("run", record.run_id, run_id),
    )
    found = [
        f"{name} {said} in a place of {name} {meant}"
        for name, said, meant in pairs
        if said != meant
    ]
    if not found and record.host >= record.num_hosts:
        found.append(f"host {record.host} of {record.num_hosts}")
    return "the record of " + " and ".join(found) if found else ""


def stray_lines(strays: Sequence[Stray], root: object) -> tuple[str, ...]:
    """Returns a line for each of the first ten strays of a run directory, and one for the rest."""
    lines = tuple(f"{root}/{stray}" for stray in strays[:MOST_NAMED])
    if len(strays) > MOST_NAMED:
        return (*lines, f"{root}: and {len(strays) - MOST_NAMED} more")
    return lines


def _repeat(index: int, warmup: bool) -> str:
    return f"{'warm-up ' if warmup else ''}{index}"


def unreadable(path: AnyPath | str, error: OSError) -> UserError:
    """Returns the message about a file that may exist and cannot be read."""
    return UserError(
        Problem(
            f"cannot be read ({error}), which does not mean that it is missing: nothing is "
            "measured in its place. Correct that, then run the same command again",
            file=str(path),
        )
    )
