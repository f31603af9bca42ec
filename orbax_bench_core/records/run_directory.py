"""Run directory: records, `run.json`, logs and checkpoint data of one run."""

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pydantic

from orbax_bench_core import files
from orbax_bench_core.config import Arm, LoadedSuite
from orbax_bench_core.errors import Problem, UserError, first_fault, remedy_of, shown
from orbax_bench_core.files import AnyPath
from orbax_bench_core.leases import WHOLE, Fence, batch_name, held
from orbax_bench_core.provenance import CodeUnderTest
from orbax_bench_core.records import reading
from orbax_bench_core.records.reading import read_point
from orbax_bench_core.records.record import Record, parse_record
from orbax_bench_core.records.repeats import Repeat, Series
from orbax_bench_core.records.run_info import (
    ENGINE_RUN,
    RunInfo,
    RunStatus,
    begin_info,
    continue_info,
    parse_engine_run,
    parse_info,
)
from orbax_bench_core.records.versions import OtherVersion, parsed_file
from orbax_bench_core.sweep import Expansion, ProcessNoiseOf, SweepEntry, side

Result = TypeVar("Result", bound=files.ResultModel)


class AlreadyRecorded(Exception):
    """A repeat has a final record, which nothing replaces."""


class RunDirectoryGone(OSError):
    """A run directory was there, and is not any more."""


class RunDirectory:
    """One run on storage.

    Attributes:
        root: The run directory, local or gs://.
        fence: The lease under which this process measures here; None while it only reads.
    """

    def __init__(self, root: str) -> None:
        """Names a run directory, local or gs://, which need not exist."""
        from etils import epath

        try:
            self.root = epath.Path(files.without_detours(files.checked_path(root)))
        except ValueError as error:
            raise UserError(str(error)) from None
        self.fence: Fence | None = None
        self._run_id: str | None = None
        self._left_out: dict[str, tuple[reading.Stray, ...]] = {}

    @contextlib.contextmanager
    def owned(
        self, points: Sequence[SweepEntry] | None, *, command: str, say: Callable[[str], None]
    ) -> Iterator[None]:
        """Holds the lease of the run, or of a batch of points, while something is measured.

        Records are written only by its holder, so that two commands on one directory, also from two
        machines, cannot measure the same.

        Args:
            points: Those of the batch; None for the whole run.
            command: What holds it, for the message of a command that waits or is refused.
            say: Takes a line for people while this waits for another holder.

        Raises:
            UserError: Another command holds it, the directory lies in that of another run, or it
                cannot be written to.
        """
        ids = () if points is None else tuple(point.id for point in points)
        owner = batch_name(ids) if ids else WHOLE
        several = ids if len(ids) > 1 else ()
        with contextlib.ExitStack() as stack:
            try:
                self._refuse_within_another()
                self.folder("records")
                fence = stack.enter_context(
                    held(self.root, owner, points=several, command=command, say=say)
                )
            except OSError as error:
                raise self._unwritable(error) from None
            self.fence = fence
            stack.callback(setattr, self, "fence", None)
            yield

    def _refuse_within_another(self) -> None:
        """Refuses to begin a run in the run directory of another one, where nobody looks for it."""
        if self.exists():
            return
        way = os.fspath(self.root)
        folders = self.root.parents if "://" in way else Path(os.path.realpath(way)).parents
        for outer in folders[:-2] if "://" in way else folders:  # no bucket is called `gs://`
            with contextlib.suppress(OSError, ValueError):
                content = json.loads(files.read_if_there(f"{outer}/run.json") or "null")
                if isinstance(content, dict) and {"run_id", "suite_name"} <= content.keys():
                    whose = f"{shown(content['suite_name'])}, run {shown(content['run_id'])}"
                    raise UserError(
                        f"{self.root} lies in {outer}, the run directory of {whose}: no run is "
                        "begun in that of another one, with which it would be moved or lost; "
                        "choose an output directory outside it"
                    )

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
            loaded: The suite as it was read.
            expansion: Its points and pairs, and what was skipped.
            code: Revisions of the benchmark classes and of the suite file; none are known without.
            process_noise: Tells what a passport knows of the processes of a pair.

        Raises:
            UserError: Another suite, or other rules after the first record, were measured here, or
                nothing can be written.
        """
        info = begin_info(loaded, expansion, code or CodeUnderTest(), process_noise)
        earlier = self.read_info() if self.exists() else None
        if earlier is not None:
            judged = earlier.paired and any(map(self.has_repeats, earlier.expansion.points))
            info = continue_info(earlier, info, str(self.root), judged=judged)
        try:
            self.write_info(info)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        return info

    @property
    def engine_run(self) -> str:
        """Id of the engine's run that this is of; empty if none was noted."""
        data = reading.read_file(self.root / ENGINE_RUN, files.MAX_BYTES)
        return "" if data is None else parse_engine_run(data, str(self.root / ENGINE_RUN))

    def refuse_other(self, engine_run: str, *, go_on: bool = False) -> None:
        """Refuses a folder in which another run of an engine has begun, unless it goes on with it.

        Its results would be taken for those of this one, or both would measure half.

        Args:
            engine_run: Id of this run, as its engine has it.
            go_on: Whether it goes on with what another one has begun.

        Raises:
            UserError: Another run has begun here.
        """
        earlier = self.engine_run
        if self.exists() and earlier != engine_run and not go_on:
            begun = self.read_info().created_at
            whose = f"the run {shown(earlier)}" if earlier else "a run of no pipeline"
            raise UserError(
                f"{self.root} holds {whose}, begun {begun:%Y-%m-%d %H:%M} UTC, and this is "
                f"{shown(engine_run)}: give each run a folder of its own, or go on with what is "
                "there: go_on, `--go-on` of a step"
            )

    def claim(self, engine_run: str, *, go_on: bool = False) -> None:
        """Notes of which run of an engine this is, under the lease of the run.

        Raises:
            UserError: Another run has begun here and `go_on` is false, or nothing can be written.
        """
        self.refuse_other(engine_run, go_on=go_on)
        if self.engine_run != engine_run:
            data = json.dumps({"version": 1, "engine_run": engine_run}, indent=2).encode()
            try:
                files.write_atomically(self.root / ENGINE_RUN, data)
            except OSError as error:
                raise self._unwritable(error) from None

    def _unwritable(self, error: Exception) -> UserError:
        remedy = remedy_of(error) if isinstance(error, OSError) else ""
        return UserError("; ".join(filter(None, [f"cannot write to {self.root}: {error}", remedy])))

    def exists(self) -> bool:
        """Returns whether a run is here.

        Raises:
            UserError: The storage does not tell: a file that cannot be read is not missing.
        """
        try:
            return files.is_there(self._info_path)
        except OSError as error:
            raise reading.unreadable(self._info_path, error) from None

    def check_there(self) -> None:
        """Checks that the run which was begun here is still here.

        Raises:
            RunDirectoryGone: It was renamed or deleted meanwhile.
        """
        if not self.exists():
            raise RunDirectoryGone(
                f"the run directory {self.root} is gone: it was renamed or deleted while it was "
                "measured; put it back under this name to go on"
            )

    @property
    def run_id(self) -> str:
        """Id of the run, as `run.json` said when it was last read."""
        return self.read_info().run_id if self._run_id is None else self._run_id

    def read_info(self) -> RunInfo:
        """Reads `run.json`.

        Raises:
            UserError: There is no run here, or one of another schema version, or it cannot be read.
        """
        data = reading.read_file(self._info_path, files.MAX_BYTES)
        if data is None:
            there = "it has no run.json" if self.root.is_dir() else "it is a file"
            why = there if self.root.exists() else "it does not exist"
            raise UserError(
                f"{self.root} is not a run directory: {why}; give one that `orbax-bench run` has "
                "made"
            )
        info = parse_info(data, str(self._info_path))
        self._run_id = info.run_id
        return info

    def read_result(
        self, name: str, model: type[Result], *, remedy: str = "report the run again"
    ) -> Result | None:
        """Returns the content of a file next to the records, or None if there is no such file.

        Args:
            name: The file.
            model: What it holds.
            remedy: What a user does once a damaged file is removed, as part of a message.

        Raises:
            UserError: It is damaged, of another version, or cannot be read.
        """
        path = self.root / name
        data = reading.read_file(path, files.MAX_BYTES)
        if data is None:
            return None
        try:
            return parsed_file(model, data, path)
        except pydantic.ValidationError as error:
            what = first_fault(error)
            said = f"damaged: {what}; remove it, and {remedy}"
            raise UserError(Problem(said, file=str(path))) from None

    def set_status(self, status: RunStatus) -> None:
        """Changes how far the run is in `run.json`, and leaves the rest as it was written.

        Raises:
            OSError: It cannot be read or written.
        """
        content = json.loads(files.read_at_most(self._info_path))
        if content.get("status") != status:
            content["status"] = status
            files.write_atomically(self._info_path, json.dumps(content, indent=2).encode())

    def write_info(self, info: RunInfo) -> None:
        """Writes `run.json`."""
        files.write_atomically(self._info_path, info.model_dump_json(indent=2).encode())
        self._run_id = info.run_id

    def read_record(
        self, point: SweepEntry, repeat: int, *, warmup: bool = False, host: int = 0
    ) -> Record | None:
        """Returns the record of one repeat; None when it has none, or one that is not its own.

        A torn record, and one of another point, repeat, host or run, is as if there were none.

        Raises:
            UserError: It is of another schema version, or cannot be read.
        """
        place = reading.RecordPlace(point.id, repeat, warmup, host)
        path = self.root / place.path
        data = reading.read_file(path)
        if data is None:
            return None
        try:
            record = parse_record(data)
        except OtherVersion as other:
            raise UserError(Problem(str(other), file=str(path))) from None
        return None if record is None or reading.misplaced(record, place, self.run_id) else record

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
            repeat: Index of the repeat; warm-ups are not read.
            arm: Which side of a pair was measured.
            block: Which block of a paired comparison it belongs to.
            life: Which slot of the block had a worker of its own for it.
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

    def read_point(self, entry: SweepEntry) -> reading.PointRecords:
        """Reads all that is recorded of a point or pair; what is left out is among `strays`."""
        found = read_point(self.root, entry, self.run_id)
        self._left_out[entry.id] = found.left_out
        return found

    def note_unknown_points(self, known: Collection[str]) -> None:
        """Takes the folders of points that the run does not have for strays."""
        self._left_out[""] = reading.unknown_points(self.root, known)

    @property
    def strays(self) -> tuple[str, ...]:
        """Files among the records that are no records of this run, a line each, as far as read."""
        return reading.stray_lines(sorted(itertools.chain(*self._left_out.values())), self.root)

    def seal(self, point: SweepEntry, repeat: int, *, host: int = 0) -> str:
        """Returns the SHA-256 of a record, by which a new try takes its place; empty for none."""
        place = reading.RecordPlace(point.id, repeat, False, host)
        data = reading.read_file(self.root / place.path)
        return "" if data is None else files.digest(data)

    def write_record(self, record: Record, *, fence: str = "", replaces: str = "") -> Record:
        """Puts the record of one repeat in its place.

        A record that passed or was skipped is final. One that failed is replaced. So is one that is
        torn, which is kept beside it under a name that readers ignore, and one that is not of its
        place, under a lease alone.

        Args:
            record: What was measured.
            fence: The lease under which it was measured, as text; that of this process without.
            replaces: Seal of a final record that this one may replace all the same.

        Returns:
            The record as it was written: one that no file can hold becomes a failed one that says
            why.

        Raises:
            AlreadyRecorded: A final record, one of another version, or one that is not of its place
                is there.
            LeaseLost: Another process holds the lease now.
        """
        place = reading.RecordPlace(record.point_id, record.repeat, record.warmup, record.host)
        path = self.root / place.path
        files.refuse_links(path.parent, self.root)
        record, data = _readable(record)
        right = Fence.parse(fence) if fence else self.fence
        # Between any two of these calls another process may make, replace or remove the file: what
        # was true of it is then asked again.
        while True:
            # As late as possible, and again before each try: the lease may be lost meanwhile.
            if right is not None:
                right.check(self.root)
            if files.create_exclusively(path, data):
                return record
            before = files.read_if_there(path, reading.MAX_RECORD_BYTES)
            if before is None:
                continue
            try:
                there = parse_record(before)
            except OtherVersion as other:
                raise AlreadyRecorded(f"{path} is {other}") from None
            wrong = "" if there is None else reading.misplaced(there, place, record.run_id)
            if there is None or (wrong and right is not None):
                files.create_exclusively(reading.aside_path(path, before), before)
            else:
                final = there.finished and files.digest(before) != replaces
                kept = wrong or ("final" if final else "")
                if kept:
                    raise AlreadyRecorded(f"{path} is {kept}")
            if files.swap(path, before, data):
                return record

    def next_warmup(self, point: SweepEntry) -> int:
        """Returns the first warm-up index of `point` after all that have a record."""
        made = [place.repeat for place in reading.places_of(self.root, point.id) if place.warmup]
        return max(made, default=-1) + 1

    def lost(self, repeats: Iterable[tuple[str, int]]) -> list[str]:
        """Returns the folders of those of some repeats, by point and index, without a record."""
        indices: dict[str, set[int]] = {}
        for point_id, index in repeats:
            indices.setdefault(point_id, set()).add(index)
        found = []
        for point_id, made in indices.items():
            there = {p.repeat for p in reading.places_of(self.root, point_id) if not p.warmup}
            found += [
                f"records/{point_id}/{reading.repeat_folder(index, False)}"
                for index in sorted(made - there)
            ]
        return found

    def has_repeats(self, point: SweepEntry) -> bool:
        """Returns whether a repeat of a point or pair has a record; warm-ups do not count."""
        return any(not place.warmup for place in reading.places_of(self.root, point.id))

    def data_path(
        self, point: SweepEntry, repeat: int, *, warmup: bool, arm: Arm | None = None
    ) -> AnyPath:
        """Returns where one repeat puts its checkpoint data: here, or on the point's storage.

        Several runs may share one storage: there each has a folder by the hash of its run
        directory.

        Args:
            point: The point or pair.
            repeat: Number of the repeat, from 0.
            warmup: Whether it is a warm-up, which are counted by themselves.
            arm: Side of a pair, whose storage may differ; None for a point without arms.
        """
        root = self._data_root(point, arm)
        return root / point.directory / reading.repeat_folder(repeat, warmup)

    def _data_root(self, point: SweepEntry, arm: Arm | None) -> AnyPath:
        from etils import epath

        storage = side(point, arm).storage
        if storage is None:
            return self.root
        # Several runs may use one storage at the same time.
        run = hashlib.sha256(str(self.root).encode()).hexdigest()[:12]
        return epath.Path(storage) / f"orbax_bench_{run}"

    def remove_data(
        self, point: SweepEntry, repeat: int, *, warmup: bool, arm: Arm | None = None
    ) -> None:
        """Deletes the checkpoint data of one repeat; its record stays."""
        path = self.data_path(point, repeat, warmup=warmup, arm=arm)
        files.remove_tree(path, self._data_root(point, arm))

    def folder(self, name: str) -> AnyPath:
        """Returns a folder of the run directory that is to be written into."""
        files.refuse_links(self.root / name, self.root)
        return self.root / name

    @property
    def logs(self) -> AnyPath:
        """Where workers' own output goes."""
        return self.folder("logs")

    @property
    def _info_path(self) -> AnyPath:
        return self.root / "run.json"


def _readable(record: Record) -> tuple[Record, bytes]:
    """Returns a record and its JSON; where nobody could read that, a failed one that says why."""
    why = "a file of records may have no more"
    try:
        data = record.model_dump_json(indent=1).encode()
        if len(data) <= reading.MAX_RECORD_BYTES:
            return record, data
    except ValueError as error:  # halves of characters, in a name say
        why = f"they cannot be written: {error}"
    record = record.without_content(why)
    return record, record.model_dump_json(indent=1).encode()
