"""Room on the disks that a session writes checkpoints to, before anything is measured."""

import dataclasses
import shutil
from pathlib import Path
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Session
from orbax_bench_core.pages import num_bytes
from orbax_bench_core.sweep import SweepPoint, sides

_LEAST_SHARE: Final = 0.5
"""Stored bytes over array bytes that even values which compress well hardly undercut."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Room:
    """Bytes on the disk of a folder: free, of all arrays at the end, of the largest checkpoint."""

    place: str
    free: int
    needed: int
    largest: int


class NoRoom(UserError):
    """A disk has no room for one checkpoint: a mistake of its choice, or it filled up."""


def check_room(session: Session) -> None:
    """Warns when checkpoints will probably fill a disk, before anything is measured.

    Nothing is known of models and checkpoints that the suite only names, nor of buckets.

    Raises:
        NoRoom: Not even one checkpoint fits, by half of the bytes of its arrays.
    """
    for room in rooms(session):
        if room.largest * _LEAST_SHARE > room.free:
            raise NoRoom(
                f"{room.place} has {num_bytes(room.free)} free, and one checkpoint of this suite "
                f"has {num_bytes(room.largest)} of arrays: make room, give another "
                "--output-directory or `storage`, or scale the suite down"
            )
        if room.needed > room.free:
            session.say(
                f"warning: {room.place} has {num_bytes(room.free)} free, and this run will keep "
                f"{num_bytes(room.needed)} of checkpoints there; without "
                "--keep-data and `execution.keep_data` each is deleted after its repeat"
            )


def rooms(session: Session) -> list[Room]:
    """Returns the room on each local disk that a session writes checkpoints to.

    Points whose size is unknown, and storage that is not local or cannot be asked, have no room
    here.

    Args:
        session: The measurement; arms that write to one disk share its room.

    Returns:
        One `Room` per disk (`st_dev`), in bytes: what is free, what all points need together, and
        what the largest checkpoint needs.
    """
    found: dict[int, Room] = {}
    for point in (point for entry in session.entries for point in sides(entry).values()):
        size, place = point.checkpoint.num_bytes, point.storage or str(session.directory.root)
        folder = _existing(place)
        if not size or folder is None:
            continue
        try:
            device, free = folder.stat().st_dev, shutil.disk_usage(folder).free
        except OSError:  # what cannot be asked is left to the run
            continue
        room = found.get(device) or Room(place=place, free=free, needed=0, largest=0)
        found[device] = dataclasses.replace(
            room, needed=room.needed + size * _kept(session, point), largest=max(room.largest, size)
        )
    return list(found.values())


def _kept(session: Session, point: SweepPoint) -> int:
    """Returns how many checkpoints of a point a run leaves that are not there yet."""
    if session.pairs or not session.keeps_data:
        return 0
    records = Path(str(session.directory.root)) / "records" / point.id
    return sum(
        not (records / f"repeat_{index}").exists() for index in range(session.info.num_repeats)
    )


def _existing(place: str) -> Path | None:
    """Returns the nearest existing folder above a local place; None for a bucket."""
    if "://" in place:
        return None
    return next((folder for folder in (Path(place), *Path(place).parents) if folder.is_dir()), None)
