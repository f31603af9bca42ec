"""Leases: the one command that measures a run or points of it, and may write their records."""

import contextlib
import dataclasses
import datetime
import hashlib
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Self

import pydantic

from orbax_bench_core import files
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath, started

WHOLE: Final = "run"
"""Owner of a whole run; the owner of a point is called by its id, that of a batch by its name."""

BATCH: Final = "batch-"
"""Begins the name of a batch of several points; one of a single point is called by its id."""
_DIGITS: Final = 12

FOLDER: Final = "leases"
_KEPT_S: Final = 7 * 86400.0
"""How long a lease is kept that nobody touches."""
_MOST_BYTES: Final = 16 * 2**20
"""Bytes of a lease, which names the points of a batch; it is read several times a second."""

_NAME: Final = re.compile(r"(?P<owner>.+)\.(?P<epoch>[1-9]\d*)\.json")


@dataclasses.dataclass
class Pace:
    """Pace of leases, and patience of newcomers; tests are in a hurry."""

    beat_s: float = 3.0  # seconds between two beats of a holder
    # seconds of the newcomer's own clock after which a counter that stood still says that its
    # holder is gone
    stale_s: float = 60.0
    poll_s: float = 0.5  # seconds between two looks at a counter


PACE: Final = Pace()


def batch_name(point_ids: Sequence[str]) -> str:
    """Returns the name of a batch: the id of its only point, or a digest over the ids."""
    if len(point_ids) == 1:
        return point_ids[0]
    return BATCH + hashlib.sha256("\n".join(point_ids).encode()).hexdigest()[:_DIGITS]


class LeaseLost(Exception):
    """Loss of a lease: another command owns by now what is about to be written."""


class Lease(files.ResultModel):
    """Content of a lease file; its holder alone writes it, and the newest of an owner stays."""

    owner: str  # what is held: `run`, or the id of a point
    token: str  # random word that no other lease has
    host: str  # name of the holder's machine
    # boot and process namespace of the holder: where these are ours, its pid is one of our own
    # processes
    machine: str
    pid: int  # process id of the holder
    # when that process started, in the kernel's ticks; empty if it does not say
    started: str = ""
    command: str  # what the holder runs
    since: datetime.datetime  # when it was taken, UTC
    beat: int = 0  # counter that the holder raises every few seconds
    ended: bool = False  # whether the holder has given it back
    # ids of the points that are held together, where it is a batch of them
    points: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"process {self.pid} on {self.host} ({self.command}), since "
            f"{self.since:%Y-%m-%d %H:%M:%S} UTC"
        )

    @property
    def provably_gone(self) -> bool:
        """Whether its holder was a process of this machine that is not there any more."""
        return self.machine == files.this_machine() and files.is_gone(self.pid, self.started)


class Fence(NamedTuple):
    """Right to write records: the lease that must still be the newest of its owner."""

    owner: str  # what is held
    token: str  # token of the lease

    def __str__(self) -> str:
        return f"{self.owner}:{self.token}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads what `str` has written."""
        owner, _, token = text.rpartition(":")
        return cls(owner, token)

    def check(self, root: AnyPath) -> None:
        """Checks that the lease is still held.

        Raises:
            LeaseLost: Another command has taken it over, or its file is gone.
        """
        newest = _newest(root, self.owner)
        if newest is None:
            raise LeaseLost(f"the lease of {root} is gone")
        lease = newest.lease
        if lease is None or lease.ended or lease.token != self.token:
            raise LeaseLost(f"{root} is measured by {lease or 'another command'} now")


class _Kept(NamedTuple):
    """A lease on storage; `lease` is None when its file is torn."""

    epoch: int
    lease: Lease | None
    data: bytes


@contextlib.contextmanager
def held(
    root: AnyPath,
    owner: str,
    *,
    points: Sequence[str] = (),
    command: str,
    say: Callable[[str], None],
) -> Iterator[Fence]:
    """Holds the lease of a whole run, of one of its points, or of a batch of them.

    A lease file is named by its owner and a number, and taken by exclusive creation of the next
    number: of two that take over one lease, one wins. Its holder raises a counter in it. A whole
    run cannot be held at the same time as one of its points, nor two batches that share a point.

    Args:
        root: The run directory.
        owner: `WHOLE`, or the name of a batch.
        points: Ids of the points of a batch of several.
        command: What holds it, for the message of a command that is refused.
        say: Takes a line for people while this waits for a lease whose holder seems dead.

    Raises:
        UserError: Another command holds it.
        OSError: The directory cannot be written to.
    """
    lease = _new(owner, command, points)
    files.refuse_links(root / FOLDER, root)
    path = _take(root, lease, say)
    beating = _Heart(path, lease)
    try:
        # The counter rises already: the next step may wait for a minute, in which a newcomer must
        # not take this lease for one that nobody holds.
        _refuse_others(root, lease, say)
        _clean(root, owner, path)
        yield Fence(owner, lease.token)
    finally:
        beating.stop()


@contextlib.contextmanager
def turn(root: AnyPath, owner: str, *, command: str, say: Callable[[str], None]) -> Iterator[None]:
    """Holds a lease that several want one after the other: who finds it held waits for its end.

    A holder that was killed where its process cannot be seen, as in another container, is waited
    for until its counter has stood still for `PACE.stale_s`.

    Args:
        root: The run directory.
        owner: Name of what is held.
        command: What holds it, for the message to those who wait.
        say: Takes a line for people, once, while this waits.

    Raises:
        OSError: The directory cannot be written to.
    """
    lease = _new(owner, command)
    files.refuse_links(root / FOLDER, root)
    path = _take(root, lease, say, patient=True)
    beating = _Heart(path, lease)
    try:
        _clean(root, owner, path)
        _sweep(root)
        yield
    finally:
        beating.stop()


def _new(owner: str, command: str, points: Sequence[str] = ()) -> Lease:
    return Lease(
        owner=owner,
        token=uuid.uuid4().hex,
        host=socket.gethostname(),
        machine=files.this_machine(),
        pid=os.getpid(),
        started=started(os.getpid()),
        command=command,
        since=datetime.datetime.now(datetime.UTC),
        points=tuple(points),
    )


class _Heart:
    """Thread that raises the counter of a lease until it is told to stop."""

    def __init__(self, path: AnyPath, lease: Lease) -> None:
        self._path = path
        self._lease = lease
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Gives the lease back."""
        self._stopped.set()
        self._thread.join()
        self._write(ended=True)

    def _beat(self) -> None:
        count = 0
        while not self._stopped.wait(PACE.beat_s):
            count += 1
            self._write(beat=count)

    def _write(self, **fields: object) -> None:
        # A directory that was renamed is not made again; a full disk has its message elsewhere.
        with contextlib.suppress(OSError):
            if files.read_if_there(self._path) is not None:
                lease = self._lease.model_copy(update=fields)
                files.write_atomically(self._path, lease.model_dump_json().encode())


def _take(
    root: AnyPath, lease: Lease, say: Callable[[str], None], *, patient: bool = False
) -> AnyPath:
    """Creates the next lease of an owner once the newest has ended or its holder is gone."""
    while True:
        newest = _newest(root, lease.owner)
        if newest is not None:
            _await_end(root, lease.owner, newest, say, patient=patient)
        epoch = 1 if newest is None else newest.epoch + 1
        path = _path(root, lease.owner, epoch)
        if files.create_exclusively(path, lease.model_dump_json().encode()):
            found = _newest(root, lease.owner)
            if found is None or found.epoch == epoch:
                return path
            # This process stood still since it looked: others took this number and later ones,
            # and deleted this one's file, so that it could be created again.
            with files.answered(path):
                path.unlink(missing_ok=True)
        time.sleep(PACE.poll_s)  # NFS may list for seconds what was there before


def _refuse_others(root: AnyPath, own: Lease, say: Callable[[str], None]) -> None:
    """Refuses what shares a point with something that is held: the whole run shares all of them.

    Both sides create their own lease before they look for the other's, so one of them sees it.
    """
    held_here = set(own.points or (own.owner,))
    for other in _owners(root):
        # Of leases of single points the name says all; those of the others are not read.
        if other == own.owner or not (
            WHOLE in (own.owner, other) or other in held_here or other.startswith(BATCH)
        ):
            continue
        newest = _newest(root, other)
        if newest is not None and (
            newest.lease is None
            or WHOLE in (own.owner, other)
            or held_here & set(newest.lease.points or (other,))
        ):
            _await_end(root, other, newest, say)


def _await_end(
    root: AnyPath,
    owner: str,
    kept: _Kept,
    say: Callable[[str], None],
    *,
    patient: bool = False,
) -> None:
    """Returns once a lease has ended or is stale; with `patient`, however long its holder lives."""
    began, told, before = time.monotonic(), False, kept
    pause = min(PACE.poll_s, PACE.stale_s / 4)
    if patient and "://" in os.fspath(root):  # each look is two requests, perhaps for hours
        pause = PACE.stale_s / 6
    while True:
        lease = kept.lease
        if lease is not None and (lease.ended or lease.provably_gone):
            return
        # Only a change that is seen here proves life: clocks of machines differ, so no time that
        # another machine has written is compared with one of this machine.
        if kept.data != before.data or kept.epoch != before.epoch:
            if not patient:
                raise UserError(_refusal(root, owner, lease))
            began, before = time.monotonic(), kept
        if time.monotonic() - began >= PACE.stale_s:
            return
        if not told and (patient or time.monotonic() - began > 2 * PACE.beat_s):
            holder = lease or "its owner"
            say(
                f"waiting for {holder}, or {PACE.stale_s:g} s without a sign of life"
                if patient
                else f"waiting for up to {PACE.stale_s:g} s: is {holder} still alive?"
            )
            told = True
        time.sleep(pause)
        now = _newest(root, owner)
        if now is None:
            return
        kept = now


def _refusal(root: AnyPath, owner: str, lease: Lease | None) -> str:
    point = owner if owner.startswith(BATCH) else f"point {owner}"
    what = "this run" if owner == WHOLE else f"{point} of this run"
    return (
        f"{root}: {what} is being measured by {lease or 'another command'}; wait for its end, stop "
        "it, or choose another output directory"
    )


def _clean(root: AnyPath, owner: str, own: AnyPath) -> None:
    """Deletes older leases of an owner, which nobody reads any more."""
    held = _NAME.fullmatch(own.name)
    assert held is not None
    for name in files.names_in(root / FOLDER):
        match = _NAME.fullmatch(name)
        if match and match["owner"] == owner and int(match["epoch"]) < int(held["epoch"]):
            with contextlib.suppress(OSError), files.answered(path := root / FOLDER / name):
                path.unlink(missing_ok=True)


def _sweep(root: AnyPath) -> None:
    """Deletes leases that no holder has touched for a week: of machines that started again, say."""
    for name in filter(_NAME.fullmatch, files.names_in(root / FOLDER)):
        with contextlib.suppress(OSError), files.answered(path := root / FOLDER / name):
            if time.time() - path.stat().mtime > _KEPT_S:
                path.unlink(missing_ok=True)


def _owners(root: AnyPath) -> list[str]:
    matches = (_NAME.fullmatch(name) for name in files.names_in(root / FOLDER))
    return sorted({match["owner"] for match in matches if match})


def _newest(root: AnyPath, owner: str) -> _Kept | None:
    matches = (_NAME.fullmatch(name) for name in files.names_in(root / FOLDER))
    epochs = [int(match["epoch"]) for match in matches if match and match["owner"] == owner]
    if not epochs:
        return None
    data = files.read_if_there(_path(root, owner, max(epochs)), _MOST_BYTES)
    if data is None:  # deleted since it was listed, for there is a newer one
        return _newest(root, owner)
    try:
        lease = Lease.model_validate_json(data)
    except pydantic.ValidationError:
        lease = None
    return _Kept(max(epochs), lease, data)


def _path(root: AnyPath, owner: str, epoch: int) -> AnyPath:
    return root / FOLDER / f"{owner}.{epoch}.json"


def holders(root: AnyPath) -> str:
    """Returns who may still hold a lease here, in words; empty if nobody does.

    A lease that was never given back counts for a week after its last sign of life, unless it is of
    a process of this machine that is gone. One that cannot be read counts for as long as it lies
    there.
    """
    for owner in _owners(root):
        newest = _newest(root, owner)
        if newest is None:
            continue
        path, lease = _path(root, owner, newest.epoch), newest.lease
        if lease is None:
            return (
                f"the process that left {path}, which cannot be read: remove it if nobody measures "
                "here"
            )
        if lease.ended or lease.provably_gone:
            continue
        with contextlib.suppress(OSError), files.answered(path):
            if time.time() - path.stat().mtime < _KEPT_S:
                return str(lease)
    return ""


def is_lease(path: str) -> bool:
    """Returns whether a path names a lease, of whatever run directory."""
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[2] == FOLDER and _NAME.fullmatch(name) is not None
