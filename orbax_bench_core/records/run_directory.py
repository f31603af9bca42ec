"""Run directory: records, `run.json`, logs and checkpoint data of one run."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pydantic

from orbax_bench_core.config import Arm, LoadedSuite
from orbax_bench_core.errors import Problem, UserError, remedy_of
from orbax_bench_core.files import (
    MAX_BYTES,
    ResultModel,
    checked_path,
    is_there,
    read_at_most,
    refuse_links,
    remove_tree,
    without_detours,
    write_atomically,
)
from orbax_bench_core.leases import WHOLE, batch_name, held
from orbax_bench_core.provenance import CodeUnderTest
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.record_files import RecordFiles, Seen, unreadable
from orbax_bench_core.records.repeats import Repeat, Series
from orbax_bench_core.records.run_file import RunFile
from orbax_bench_core.records.run_info import RunInfo, RunStatus, begun, continued, parsed_info
from orbax_bench_core.records.strays import repeat_folder
from orbax_bench_core.sweep import Expansion, ProcessNoiseOf, SweepEntry, side

if TYPE_CHECKING:
    from etils import epath


Result = TypeVar("Result", bound=ResultModel)


class RunDirectoryGone(OSError):
    """A run directory was there, and is not any more."""


class RunDirectory(RecordFiles):
    """One run on storage."""

    def __init__(self, root: str) -> None:
        """Names a run directory, local or gs://, which need not exist."""
        from etils import epath

        try:
            super().__init__(epath.Path(without_detours(checked_path(root))))
        except ValueError as error:
            raise UserError(str(error)) from None
        self._run_id: str | None = None

    @contextlib.contextmanager
    def owned(
        self, points: Sequence[SweepEntry] | None, *, command: str, say: Callable[[str], None]
    ) -> Iterator[None]:
        """Holds the lease of the run, or of a batch of points, while something is measured."""
        ids = () if points is None else tuple(point.id for point in points)
        owner = batch_name(ids) if ids else WHOLE
        several = ids if len(ids) > 1 else ()
        with contextlib.ExitStack() as stack:
            try:
                self.folder("records")
                fence = stack.enter_context(
                    held(self.root, owner, points=several, command=command, say=say)
                )
            except OSError as error:
                raise self._unwritable(error) from None
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
        """
        info = begun(loaded, expansion, code or CodeUnderTest(), process_noise)
        earlier = self.read_info() if self.exists() else None
        if earlier is not None:
            judged = earlier.paired and any(map(self.has_repeats, earlier.expansion.points))
            info = continued(earlier, info, str(self.root), judged=judged)
        try:
            self.write_info(info)
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        return info

    def _unwritable(self, error: Exception) -> UserError:
        remedy = remedy_of(error) if isinstance(error, OSError) else ""
        return UserError("; ".join(filter(None, [f"cannot write to {self.root}: {error}", remedy])))

    def exists(self) -> bool:
        """Returns whether a run is here."""
        try:
            return is_there(self._info_path)
        except OSError as error:
            raise unreadable(self._info_path, error) from None

    def check_there(self) -> None:
        """Checks that the run which was begun here is still here."""
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
        """Reads `run.json`."""
        data = self._read(self._info_path, MAX_BYTES)
        if data is None:
            there = "it has no run.json" if self.root.is_dir() else "it is a file"
            why = there if self.root.exists() else "it does not exist"
            raise UserError(
                f"{self.root} is not a run directory: {why}; give one that `orbax-bench run` has "
                "made"
            )
        info = parsed_info(data, str(self._info_path))
        self._run_id = info.run_id
        return info

    def read_result(
        self, name: RunFile, model: type[Result], *, remedy: str = "report the run again"
    ) -> Result | None:
        """Returns what a file beside the records says; None where there is no such file."""
        path = self.root / name
        data = self._read(path, MAX_BYTES)
        if data is None:
            return None
        try:
            return model.model_validate_json(data)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            what = ": ".join(filter(None, [where, first["msg"]]))
            said = f"damaged, or of another release: {what}; remove it, and {remedy}"
            raise UserError(Problem(said, file=str(path))) from None

    def set_status(self, status: RunStatus) -> None:
        """Changes how far the run is in `run.json`, and leaves the rest as it was written."""
        content = json.loads(read_at_most(self._info_path))
        if content.get("status") != status:
            content["status"] = status
            write_atomically(self._info_path, json.dumps(content, indent=2).encode())

    def write_info(self, info: RunInfo) -> None:
        """Writes `run.json`."""
        write_atomically(self._info_path, info.model_dump_json(indent=2).encode())
        self._run_id = info.run_id

    def records(self) -> Iterator[Record]:
        """Yields every record here: points as in `run.json`, then warm-ups and repeats."""
        for _, records in self.by_point():
            yield from records

    def by_point(
        self, info: RunInfo | None = None, seen: Seen | None = None
    ) -> Iterator[tuple[SweepEntry, Iterator[Record]]]:
        """Yields every point of the run with its records."""
        info = info or self.read_info()
        self._note_unknown(info.expansion.points)
        for point in info.expansion.points:
            yield point, self._records_of(point.id, info.run_id, seen)

    def read_repeat(
        self,
        point: SweepEntry,
        repeat: int,
        arm: Arm | None = None,
        block: int | None = None,
        life: int | None = None,
    ) -> Repeat:
        """Returns one measured repeat over all its hosts."""
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

    def data_path(
        self, point: SweepEntry, repeat: int, *, warmup: bool, arm: Arm | None = None
    ) -> epath.Path:
        """Returns where one repeat puts its checkpoint data: here, or on the point's storage."""
        root = self._data_root(point, arm)
        return root / point.directory / repeat_folder(repeat, warmup)

    def _data_root(self, point: SweepEntry, arm: Arm | None) -> epath.Path:
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
        remove_tree(path, self._data_root(point, arm))

    def folder(self, name: str) -> epath.Path:
        """Returns a folder of the run directory that is to be written into."""
        refuse_links(self.root / name, self.root)
        return self.root / name

    @property
    def logs(self) -> epath.Path:
        """Where workers' own output goes."""
        return self.folder("logs")

    @property
    def _info_path(self) -> epath.Path:
        return self.root / "run.json"
