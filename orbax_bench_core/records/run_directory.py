"""Run directory: records, `run.json`, logs and checkpoint data of one run."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import datetime
import functools
import hashlib
import json
import shlex
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pydantic

from orbax_bench_core.config import (
    Arm,
    GateConfig,
    LoadedSuite,
    Problem,
    UserError,
    checked_path,
    gate_changes,
    gate_edits,
)
from orbax_bench_core.interrupts import uninterrupted
from orbax_bench_core.records.batches import batch_name
from orbax_bench_core.records.code import CodeUnderTest
from orbax_bench_core.records.exclusive import (
    create_exclusively,
    digest,
    is_there,
    names_in,
    read_if_there,
    swap,
)
from orbax_bench_core.records.files import write_atomically
from orbax_bench_core.records.lease import WHOLE, Fence, held
from orbax_bench_core.records.record import (
    SCHEMA_VERSION,
    Record,
    whole_record,
)
from orbax_bench_core.records.repeats import Repeat, Series
from orbax_bench_core.records.run_info import RunInfo, RunStatus
from orbax_bench_core.records.strays import (
    NO_PLACE,
    NO_POINT,
    TORN,
    Place,
    Stray,
    misplaced,
    misplaced_stray,
    place_of,
    stray_lines,
    unread_stray,
)
from orbax_bench_core.records.temporary import is_abandoned
from orbax_bench_core.records.versions import other_version, refuse_other_version
from orbax_bench_core.sweep import (
    Expansion,
    ProcessNoiseOf,
    SweepEntry,
    design_of,
    side,
)

if TYPE_CHECKING:
    from etils import epath

LIMITS_FILE: Final = "limits.json"
HOST_LIMITS_FILE: Final = "limits_of_hosts.json"
STUDY_FILE: Final = "async_study.json"
RECOVERY_FILE: Final = "recovery.json"
SOAK_FILE: Final = "soak.json"
VERDICTS_FILE: Final = "verdicts.json"
BEST_FILE: Final = "best.json"
SEARCH_FILE: Final = "search.json"

_AT_ONCE: Final = 16
"""An object store answers many requests at once as fast as one."""


class RunDirectoryGone(OSError):
    """A run directory was there, and is not any more."""


class RunDirectory:
    """One run on storage.

    Attributes:
        root: The directory, local or gs://.
        fence: The lease under which this process measures here; None while it only reads.
    """

    def __init__(self, root: str) -> None:
        """Names a run directory, local or gs://, which need not exist.

        Raises:
            UserError: The path cannot be honoured.
        """
        from etils import epath

        try:
            self.root: epath.Path = epath.Path(checked_path(root))
        except ValueError as error:
            raise UserError(str(error)) from None
        self.fence: Fence | None = None
        self._folder = str(self.root)
        self._run_id: str | None = None
        self._strays: dict[str, Stray] = {}
        self._abandoned: set[str] = set()

    @contextlib.contextmanager
    def owned(
        self, points: Sequence[SweepEntry] | None, *, command: str, say: Callable[[str], None]
    ) -> Iterator[None]:
        """Holds the lease of the whole run, or of a batch of points, while something is measured.

        Args:
            points: The points or pairs; None for all of the run.
            command: What this process runs, for whoever is refused meanwhile.
            say: Told when the lease of another command has to be watched.

        Raises:
            UserError: Another command measures it, or the lease cannot be read or written.
        """
        ids = () if points is None else tuple(point.id for point in points)
        owner = batch_name(ids) if ids else WHOLE
        several = ids if len(ids) > 1 else ()
        with contextlib.ExitStack() as stack:
            try:
                fence = stack.enter_context(
                    held(self.root, owner, points=several, command=command, say=say)
                )
            except OSError as error:
                raise UserError(f"cannot write to {self.root}: {error}") from None
            self.fence = fence
            stack.callback(setattr, self, "fence", None)
            yield

    def start(
        self,
        loaded: LoadedSuite,
        expansion: Expansion,
        code: CodeUnderTest | None = None,
        process_noise: ProcessNoiseOf | None = None,
    ) -> RunInfo:
        """Begins a run here, or continues the one of the same suite that is here already.

        The rules of a comparison and the design of its pairs are frozen once one of its operations
        is recorded.

        Args:
            loaded: The suite.
            expansion: Its points.
            code: What is under test; a run that goes on keeps what it began with.
            process_noise: What is known of processes here, by which designs are chosen; None
                knows nothing.

        Raises:
            UserError: The directory belongs to another suite, was measured for other rules, or
                cannot be read or written.
        """
        suite = loaded.suite
        info = RunInfo(
            run_id=uuid.uuid4().hex[:12],
            suite_name=suite.suite_name,
            suite_identity=suite.identity,
            suite_text=loaded.text,
            suite_file=loaded.source.file,
            num_repeats=suite.num_repeats,
            execution=suite.execution,
            gate=suite.gate,
            rules=suite.gate.fingerprint,
            seed="" if suite.gate.seed is None else str(suite.gate.seed),
            baseline="" if suite.arms is None else str(suite.arms.baseline),
            candidate="" if suite.arms is None else str(suite.arms.candidate),
            designs={
                pair.id: design_of(
                    pair,
                    suite.gate,
                    passport=None if process_noise is None else process_noise(pair, suite.gate),
                )
                for pair in expansion.pairs
            },
            expansion=expansion.model_copy(update={"files": {}}),
            code=code or CodeUnderTest(),
            created_at=datetime.datetime.now(datetime.UTC),
        )
        earlier = self.read_info() if self.exists() else None
        if earlier is not None:
            if earlier.suite_identity != info.suite_identity:
                raise UserError(
                    f"{self.root} holds a run of another suite ({earlier.suite_name!r}, begun "
                    f"{earlier.created_at:%Y-%m-%d %H:%M} UTC); choose another output directory"
                )
            kept = {
                "run_id": earlier.run_id,
                "created_at": earlier.created_at,
                "code": earlier.code,
            }
            info = info.model_copy(update={**kept, **self._frozen(earlier, info)})
        try:
            self.write_info(info)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot write to {self.root}: {error}") from None
        return info

    def _frozen(self, earlier: RunInfo, info: RunInfo) -> dict[str, Any]:
        """Returns the fields of `run.json` that stay as they are; rules change before any block."""
        if not (earlier.paired and any(map(self._has_blocks, earlier.expansion.points))):
            return {}
        if earlier.gate.fingerprint != info.gate.fingerprint:
            raise UserError(
                f"{self.root} was measured for other rules ({gate_changes(earlier.gate, info.gate)}"
                "): rules that are chosen after the data decide nothing. Measure anew in another "
                "output directory, or judge what is here by other rules, as an exploration: "
                f"`orbax-bench compare {self.root}{_as_flags(earlier.gate, info.gate)}`"
            )
        designs = {pair.id: earlier.design(pair) for pair in earlier.expansion.pairs}
        return {"rules": earlier.rules, "seed": earlier.seed, "designs": designs}

    def _has_blocks(self, point: SweepEntry) -> bool:
        return any(not place.warmup for place, _ in self._files(point.id) if place is not None)

    def exists(self) -> bool:
        """Returns whether a run is here.

        Raises:
            UserError: That cannot be known.
        """
        try:
            return is_there(self._info_path)
        except OSError as error:
            raise unreadable(self._info_path, error) from None

    def check_there(self) -> None:
        """Checks that the run which was begun here is still here.

        Raises:
            RunDirectoryGone: It is not. Writing to it would begin a second one without `run.json`.
        """
        if not self.exists():
            raise RunDirectoryGone(
                f"the run directory {self.root} is gone: it was renamed or deleted while it was "
                "measured; put it back under this name to go on"
            )

    def read_info(self) -> RunInfo:
        """Reads `run.json`.

        Raises:
            UserError: There is no run here, or one of another schema version, or it cannot be read.
        """
        data = self._read(self._info_path)
        if data is None:
            raise UserError(f"{self.root} is not a run directory: it has no run.json")
        try:
            info = RunInfo.model_validate_json(data)
        except pydantic.ValidationError as error:
            if newer := other_version(data):
                said = f"{newer}: upgrade orbax-bench to read it"
                raise UserError(Problem(said, file=str(self._info_path))) from None
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UserError(
                Problem(
                    f"not readable as schema version {SCHEMA_VERSION}: {where}: {first['msg']}",
                    file=str(self._info_path),
                )
            ) from None
        self._run_id = info.run_id
        return info

    def set_status(self, status: RunStatus) -> None:
        """Changes how far the run is in `run.json`, and leaves the rest as it was written."""
        import msgspec

        data = self._info_path.read_bytes()
        # Mostly it says so already, and all of a large run as plain data is a hundred megabytes.
        parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        if bytes(parts.get("status", b"")) != f'"{status}"'.encode():
            content = json.loads(data)
            content["status"] = status
            write_atomically(self._info_path, json.dumps(content, indent=2).encode())

    def write_info(self, info: RunInfo) -> None:
        """Writes `run.json`."""
        write_atomically(self._info_path, info.model_dump_json(indent=2).encode())
        self._run_id = info.run_id

    def read_record(
        self, point: SweepEntry, repeat: int, *, warmup: bool = False, host: int = 0
    ) -> Record | None:
        """Returns the record of one repeat; None when it has none, or one that is not its own.

        A torn record, and one of another point, repeat, host or run, is as if there were none.

        Raises:
            UserError: It cannot be read, which does not mean that there is none, or is of another
                schema version.
        """
        place = Place(point.id, repeat, warmup, host)
        path = self._path(place)
        data = self._read(path)
        if data is None:
            return None
        refuse_other_version(data, str(path))
        record = _parsed(data)
        return None if record is None or misplaced(record, place, self._id) else record

    def check_versions(
        self, entries: Iterable[SweepEntry], *, say: Callable[[str], None] | None = None
    ) -> None:
        """Checks that every record of some points and pairs is of a schema version that is read.

        Args:
            entries: The points and pairs.
            say: Told of each record that a crash has torn, and what becomes of it.

        Raises:
            UserError: One is not, and what is measured beside it could not be told from it.
        """
        paths = [
            self._path(place)
            for entry in entries
            for place, _ in self._files(entry.id)
            if place is not None
        ]
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            for path, data in zip(paths, pool.map(self._read, paths), strict=True):
                refuse_other_version(data or b"", str(path))
                if say is not None and data is not None and _ends_early(data):
                    say(
                        f"{path} is torn: its repeat is measured again, and the file kept beside "
                        f"it as {_aside(path, data).name}"
                    )

    def seal(self, point: SweepEntry, repeat: int, *, host: int = 0) -> str:
        """Returns the SHA-256 of a record, by which a new try takes its place; empty for none."""
        data = self._read(self._path(Place(point.id, repeat, False, host)))
        return "" if data is None else digest(data)

    def read_repeat(
        self,
        point: SweepEntry,
        repeat: int,
        arm: Arm | None = None,
        block: int | None = None,
        life: int | None = None,
    ) -> Repeat:
        """Returns one measured repeat over all its hosts.

        Args:
            point: The point or pair.
            repeat: Its index.
            arm: Which side of a pair.
            block: The block that it belongs to.
            life: The slot of the block that has a worker of its own for it.
        """
        hosts = range(side(point, arm).processes)
        found = {host: self.read_record(point, repeat, host=host) for host in hosts}
        (series,) = (each for each in Series.all_of(point) if each.arm == arm)
        return Repeat(
            series=series,
            index=repeat,
            block=block,
            life=life,
            records={host: record for host, record in found.items() if record},
            num_hosts=len(hosts),
        )

    def write_record(self, record: Record, *, fence: str = "", replaces: str = "") -> None:
        """Puts the record of one repeat in its place.

        A record that passed or was skipped is final. One that failed is replaced. So is one that is
        torn, which is kept beside it under a name that readers ignore, and one that is not of its
        place, under a lease alone.

        Args:
            record: The record.
            fence: Lease under which it was measured, as `str(fence)` gives it; by default the one
                that is held here, if any.
            replaces: Seal of a record that may be replaced although it passed, because its repeat
                did not pass on every host.

        Raises:
            LeaseLost: Another command measures this by now.
            AlreadyRecorded: There is a final record, or one of another schema version.
            OSError: It cannot be written.
        """
        place = Place(record.point_id, record.repeat, record.warmup, record.host)
        path = self._path(place)
        data = record.model_dump_json(indent=1).encode()
        right = Fence.parse(fence) if fence else self.fence
        while True:
            if right is not None:
                right.check(self.root)
            if create_exclusively(path, data):
                return
            before = read_if_there(path)
            if before is None:
                continue
            there = _parsed(before)
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
                return

    def next_warmup(self, point: SweepEntry) -> int:
        """Returns the first warm-up index of `point` after all that have a record."""
        made = [place.repeat for place, _ in self._files(point.id) if place and place.warmup]
        return max(made, default=-1) + 1

    @property
    def strays(self) -> tuple[str, ...]:
        """Files among the records that are no records of this run, a line each, as far as read.

        Whoever reads records leaves them out; `by_point` and `records` meet all of them.
        """
        found = [self._strays[path] for path in sorted(self._strays)]
        return stray_lines(found, self.root)

    def records(self) -> Iterator[Record]:
        """Yields every record here: points as in `run.json`, then warm-ups and repeats."""
        for _, records in self.by_point():
            yield from records

    def by_point(
        self, info: RunInfo | None = None
    ) -> Iterator[tuple[SweepEntry, Iterator[Record]]]:
        """Yields every point of the run with its records.

        Args:
            info: What `run.json` says, where the caller has it: that of a large run is large.
        """
        info = info or self.read_info()
        known = {point.id for point in info.expansion.points}
        for name in self._names(self._under("records")):
            if name not in known and not name.startswith("."):
                self._note(f"records/{name}", NO_POINT)
        for point in info.expansion.points:
            yield point, self._records_of(point.id, info.run_id)

    def point_records(self, point: SweepEntry) -> list[Record]:
        """Returns every record of one point: warm-ups, then repeats, by host.

        What is not what its place says is left out, and among `strays`.

        Raises:
            UserError: A record cannot be read, which does not mean that there is none.
        """
        return list(self._records_of(point.id, self._id))

    def _records_of(self, point_id: str, run_id: str) -> Iterator[Record]:
        self._forget(point_id)
        places = []
        for place, path in self._files(point_id):
            if place is None:
                self._note(path, NO_PLACE)
            else:
                places.append(place)
        for place in sorted(places, key=lambda place: (not place.warmup, place.repeat, place.host)):
            data = self._read(self._under(place.path))
            if data is None:
                continue
            record = _parsed(data)
            if record is None:
                unread = other_version(data)
                self._note(place.path, unread_stray(unread) if unread else TORN)
            elif wrong := misplaced(record, place, run_id):
                self._note(place.path, misplaced_stray(wrong))
            else:
                yield record

    def _files(self, point_id: str) -> Iterator[tuple[Place | None, str]]:
        """Yields what lies among the records of a point: its place, if it is one, and its path."""
        folder = f"records/{point_id}"
        for repeat in self._names(self._under(folder)):
            if repeat.startswith("."):
                continue
            if place_of(point_id, repeat, "host_0.json") is None:
                yield None, f"{folder}/{repeat}"
                continue
            for name in self._names(self._under(f"{folder}/{repeat}")):
                if not name.startswith("."):
                    yield place_of(point_id, repeat, name), f"{folder}/{repeat}/{name}"
                elif name.endswith(".tmp"):
                    self._abandoned.add(f"{folder}/{repeat}/{name}")

    def clear_abandoned(self, entries: Iterable[SweepEntry] = ()) -> None:
        """Deletes what writers that were killed have left among the records, as far as read.

        Args:
            entries: Points and pairs that are looked at first, read or not.
        """
        if "://" in str(self.root):  # an object store shows no object that is not complete
            return
        for entry in entries:
            collections.deque(self._files(entry.id), maxlen=0)
        for place in self._abandoned:
            path = Path(self.root / place)
            if is_abandoned(path):
                path.unlink(missing_ok=True)
        self._abandoned.clear()

    def _forget(self, point_id: str) -> None:
        """Forgets what was met among the records of a point, which is about to be read again."""
        for path in [path for path in self._strays if path.startswith(f"records/{point_id}/")]:
            del self._strays[path]

    def _note(self, path: str, reason: str) -> None:
        self._strays[path] = Stray(path, reason)

    def data_path(
        self, point: SweepEntry, repeat: int, *, warmup: bool, arm: Arm | None = None
    ) -> epath.Path:
        """Returns where one repeat puts its checkpoint data: here, or on the point's storage."""
        from etils import epath

        root, storage = self.root, side(point, arm).storage
        if storage is not None:
            # Several runs may use one storage at the same time.
            run = hashlib.sha256(str(self.root).encode()).hexdigest()[:12]
            root = epath.Path(storage) / f"orbax_bench_{run}"
        return root / point.directory / _repeat_folder(repeat, warmup)

    def remove_data(
        self, point: SweepEntry, repeat: int, *, warmup: bool, arm: Arm | None = None
    ) -> None:
        """Deletes the checkpoint data of one repeat; its record stays."""
        path = self.data_path(point, repeat, warmup=warmup, arm=arm)
        if path.exists():
            path.rmtree()

    @property
    def logs(self) -> epath.Path:
        """Where workers' own output goes."""
        return self.root / "logs"

    @property
    def _info_path(self) -> epath.Path:
        return self.root / "run.json"

    def _path(self, place: Place) -> epath.Path:
        return self.root / place.path

    def _under(self, path: str) -> str:
        """Returns the path of a file in the run directory as text, which takes hardly any time."""
        return f"{self._folder}/{path}"

    def _read(self, path: epath.Path | str) -> bytes | None:
        """Returns what a file holds, or None when it is not there."""
        try:
            return read_if_there(path)
        except OSError as error:
            raise unreadable(path, error) from None

    def _names(self, folder: epath.Path | str) -> list[str]:
        """Returns the names in a folder; none when it is not there."""
        try:
            return names_in(folder)
        except OSError as error:
            raise unreadable(folder, error) from None

    @property
    def _id(self) -> str:
        """Id of the run, as `run.json` said when it was last read."""
        return self.read_info().run_id if self._run_id is None else self._run_id


class AlreadyRecorded(Exception):
    """A repeat has a final record, which nothing replaces."""


def _parsed(data: bytes) -> Record | None:
    """Returns a record, or None of what is torn or of another schema version."""
    return _parser()(data)


@functools.cache
def _parser() -> Callable[[bytes], Record | None]:
    """Returns what parses records; who only writes them, as a worker does, does not wait for it."""
    try:
        with uninterrupted():
            from orbax_bench_core.records.parsing import parsed_record
    except ModuleNotFoundError as lacking:
        if lacking.name != "msgspec":
            raise
        # A worker reads few records, in environments that need not have what reads many.
        return whole_record
    return parsed_record


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


def _repeat_folder(repeat: int, warmup: bool) -> str:
    return f"{'warmup' if warmup else 'repeat'}_{repeat}"


def _as_flags(before: GateConfig, after: GateConfig) -> str:
    return "".join(f" --rule {shlex.quote(edit)}" for edit in gate_edits(before, after))
