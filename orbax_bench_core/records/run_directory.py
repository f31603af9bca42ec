"""Run directory: records, `run.json`, logs and checkpoint data of one run."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

import pydantic

from orbax_bench_core.config import (
    Arm,
    ExecutionConfig,
    GateConfig,
    LoadedSuite,
    Problem,
    UserError,
    checked_path,
)
from orbax_bench_core.records.code import CodeUnderTest
from orbax_bench_core.records.files import write_atomically
from orbax_bench_core.records.record import (
    SCHEMA_VERSION,
    Record,
    ResultModel,
    SchemaVersion,
)
from orbax_bench_core.records.repeats import Repeat, Series
from orbax_bench_core.records.versions import refuse_other_version
from orbax_bench_core.sweep import BLOCK_SIZE, Expansion, Pair, SweepEntry, side, sides

if TYPE_CHECKING:
    from etils import epath

LIMITS_FILE: Final = "limits.json"
STUDY_FILE: Final = "async_study.json"
VERDICTS_FILE: Final = "verdicts.json"

RunStatus = Literal["running", "complete", "incomplete"]


class RunDirectoryGone(OSError):
    """A run directory was there, and is not any more."""


class RunInfo(ResultModel):
    """What `run.json` says: the expanded suite and how far it is.

    Attributes:
        schema_version: Version of this layout.
        run_id: Unique id of the run.
        suite_name: Name of the suite.
        suite_identity: SHA-256 of what is measured, in hex.
        suite_text: The suite file, word for word.
        suite_file: Where it came from.
        num_repeats: Measured repeats per point.
        execution: How repeats are run.
        gate: When a difference between arms counts.
        baseline: What the baseline arm has different, for people; empty without arms.
        candidate: What the candidate arm has different.
        expansion: The points, those skipped, and notes.
        code: Revisions of the benchmark classes and of the suite file when the run began; a record
            has those that it was measured with.
        created_at: When the run began, UTC.
        status: `running`; `complete` when every repeat is finished; `incomplete` otherwise.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run_id: str
    suite_name: str
    suite_identity: str
    suite_text: str
    suite_file: str
    num_repeats: int
    execution: ExecutionConfig
    gate: GateConfig = GateConfig()
    baseline: str = ""
    candidate: str = ""
    expansion: Expansion
    code: CodeUnderTest = CodeUnderTest()
    created_at: datetime.datetime
    status: RunStatus = "running"

    @property
    def num_series(self) -> int:
        """How many points are measured, each arm of a pair counted."""
        return sum(len(sides(entry)) for entry in self.expansion.points)

    @property
    def paired(self) -> bool:
        """Whether the run compares two arms."""
        return any(isinstance(entry, Pair) for entry in self.expansion.points)


class RunDirectory:
    """One run on storage.

    Attributes:
        root: The directory, local or gs://.
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

    def start(
        self, loaded: LoadedSuite, expansion: Expansion, code: CodeUnderTest | None = None
    ) -> RunInfo:
        """Begins a run here, or continues the one of the same suite that is here already.

        `code` is what is under test; a run that goes on keeps what it began with.

        Raises:
            UserError: The directory belongs to another suite, or cannot be written.
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
            baseline="" if suite.arms is None else str(suite.arms.baseline),
            candidate="" if suite.arms is None else str(suite.arms.candidate),
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
            info = info.model_copy(update=kept)
        try:
            self.write_info(info)
        except (OSError, ValueError) as error:
            raise UserError(f"cannot write to {self.root}: {error}") from None
        return info

    def exists(self) -> bool:
        """Returns whether a run is here."""
        return bool(self._info_path.exists())

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
            UserError: There is no run here, or one of another schema version.
        """
        try:
            return RunInfo.model_validate_json(self._info_path.read_bytes())
        except OSError:
            raise UserError(f"{self.root} is not a run directory: it has no run.json") from None
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UserError(
                Problem(
                    f"not readable as schema version {SCHEMA_VERSION}: {where}: {first['msg']}",
                    file=str(self._info_path),
                )
            ) from None

    def set_status(self, status: RunStatus) -> None:
        """Changes how far the run is in `run.json`, and leaves the rest as it was written."""
        content = json.loads(self._info_path.read_bytes())
        if content.get("status") != status:
            content["status"] = status
            write_atomically(self._info_path, json.dumps(content, indent=2).encode())

    def write_info(self, info: RunInfo) -> None:
        """Writes `run.json`."""
        write_atomically(self._info_path, info.model_dump_json(indent=2).encode())

    def read_record(
        self, point: SweepEntry, repeat: int, *, warmup: bool = False, host: int = 0
    ) -> Record | None:
        """Returns the record of one repeat, or None when it has none that can be read."""
        return _read_record(self._record_path(point.id, repeat, warmup=warmup, host=host))

    def read_repeat(self, point: SweepEntry, repeat: int, arm: Arm | None = None) -> Repeat:
        """Returns one measured repeat, of one side of a pair or of a point, over all its hosts."""
        hosts = range(side(point, arm).processes)
        found = {host: self.read_record(point, repeat, host=host) for host in hosts}
        (series,) = (each for each in Series.all_of(point) if each.arm == arm)
        return Repeat(
            series=series,
            index=repeat,
            block=None if arm is None else repeat // BLOCK_SIZE,
            records={host: record for host, record in found.items() if record},
            num_hosts=len(hosts),
        )

    def write_record(self, record: Record) -> None:
        """Writes the record of one repeat."""
        path = self._record_path(
            record.point_id, record.repeat, warmup=record.warmup, host=record.host
        )
        write_atomically(path, record.model_dump_json(indent=1).encode())

    def next_warmup(self, point: SweepEntry) -> int:
        """Returns the first warm-up index of `point` that has no record."""
        index = 0
        while self._record_path(point.id, index, warmup=True, host=0).exists():
            index += 1
        return index

    def records(self) -> Iterator[Record]:
        """Yields every record here: points as in `run.json`, then warm-ups and repeats."""
        for point in self.read_info().expansion.points:
            yield from self.point_records(point)

    def point_records(self, point: SweepEntry) -> list[Record]:
        """Returns every readable record of one point: warm-ups, then repeats, by host."""
        return self.records_in(point.id)

    def records_in(self, point_id: str) -> list[Record]:
        """Returns every readable record of the point with that id."""
        folder = self.root / "records" / point_id
        paths = sorted(folder.glob("*/host_*.json"), key=_record_order)
        return [record for record in map(_read_record, paths) if record is not None]

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

    def _record_path(self, point_id: str, repeat: int, *, warmup: bool, host: int) -> epath.Path:
        folder = self.root / "records" / point_id / _repeat_folder(repeat, warmup)
        return folder / f"host_{host}.json"


def _read_record(path: epath.Path) -> Record | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        return Record.model_validate_json(data)
    except pydantic.ValidationError:
        refuse_other_version(data, str(path))  # what is torn is run again; what is newer is kept
        return None


def _repeat_folder(repeat: int, warmup: bool) -> str:
    return f"{'warmup' if warmup else 'repeat'}_{repeat}"


def _record_order(path: epath.Path) -> tuple[bool, int, int]:
    kind, _, index = path.parent.name.partition("_")
    return kind == "repeat", int(index), int(path.stem.partition("_")[2])
