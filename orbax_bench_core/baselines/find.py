"""Search for past runs: run directories, folders of them, and registries of baselines."""

import dataclasses
import datetime
import glob
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from orbax_bench_core.baselines.captures import Capture
from orbax_bench_core.baselines.store import Registry, registry_path
from orbax_bench_core.config import GateConfig
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath, matching, place
from orbax_bench_core.provenance import other_surroundings
from orbax_bench_core.records import Record, Run, RunDirectory, RunInfo, seconds_per_repeat

_ACCEPTED: Final = "give run directories, a directory that holds some, or a registry of baselines"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundRun:
    """A past run, wherever it is kept."""

    run_id: str
    place: str  # where it is, for people
    began_at: datetime.datetime  # when it began, UTC
    gate: GateConfig  # when a difference counts
    info: RunInfo | None = None  # what its `run.json` says; None for a capture of a run
    read: Callable[[], Iterator[Sequence[Record]]]  # reads its records, point by point
    # where it lies, whose strays are known once it was read; None for a capture
    directory: RunDirectory | None = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Files among its records that are no records of the run, as far as it was read."""
        return () if self.directory is None else self.directory.strays


def find_runs(places: Iterable[str], *, left_out: list[str] | None = None) -> list[FoundRun]:
    """Returns the runs that places hold, each once, in the order of time.

    Args:
        places: Run directories, registries, folders of them, or patterns.
        left_out: Takes a line for each run that cannot be read; None makes that an error.

    Raises:
        UserError: A place does not exist or holds no run, a pattern names no directory, or a run
            cannot be read.
    """
    found: dict[str, list[FoundRun]] = {}
    folders = [folder for place in places for folder in _folders(place)]
    for folder in folders:
        for run in _runs_in(folder, left_out, alone=len(folders) == 1):
            found.setdefault(run.run_id, []).append(run)
    once = list[FoundRun]()
    for same in found.values():
        # A run directory has all that captures of the same run have.
        whole = [run for run in same if run.info is not None]
        once += whole[:1] or {run.place: run for run in same}.values()
    return sorted(once, key=lambda run: (run.began_at, run.run_id))


def _folders(place: str) -> list[AnyPath]:
    if "://" in place or not glob.has_magic(place) or registry_path(place).exists():
        return [registry_path(place)]
    folders = [registry_path(path) for path in sorted(glob.glob(place))]  # noqa: PTH207 - may be absolute
    found = [folder for folder in folders if folder.is_dir()]
    if not found:
        raise UserError(f"no directory is called {place}")
    return found


def _runs_in(
    folder: AnyPath, left_out: list[str] | None = None, *, alone: bool = True
) -> list[FoundRun]:
    beside_others = None if alone else left_out
    if RunDirectory(str(folder)).exists():
        return _readable([folder], beside_others)
    if not folder.exists():
        raise UserError(f"{folder} does not exist; {_ACCEPTED}")
    inside = sorted(file.parent for file in matching(folder, "*/run.json"))
    if inside:
        return _readable(inside, left_out)
    registry = Registry(str(folder))
    captures = registry.captures()
    if not captures:
        raise UserError(f"{folder} holds no run: {_ACCEPTED}")
    return [_of_capture(registry, capture) for capture in captures]


def _readable(folders: Iterable[AnyPath], left_out: list[str] | None) -> list[FoundRun]:
    """Returns the runs of folders; one that cannot be read is an error, or a line in `left_out`."""
    found = []
    for folder in folders:
        try:
            run = RunDirectory(str(folder))
            found.append(found_in(run, run.read_info()))
        except UserError as unreadable:
            if left_out is None:
                raise
            left_out.append(f"{unreadable}: move it away, or run its suite into it again")
    return found


def found_in(run: RunDirectory, info: RunInfo) -> FoundRun:
    """Returns the run of a run directory, whose `run.json` was read."""

    def read() -> Iterator[Sequence[Record]]:
        for point in Run(run).points():
            yield point.records

    return FoundRun(
        run_id=info.run_id,
        place=str(run.root),
        began_at=info.created_at,
        gate=info.gate,
        info=info,
        read=read,
        directory=run,
    )


def runs_below(folder: str, unread: dict[str, str]) -> Iterator[tuple[RunDirectory, RunInfo]]:
    """Yields the runs in a folder, two folders down at most.

    In `unread` it notes those that cannot be read: why, by the place of the run.

    Raises:
        UserError: There is no such folder.
    """
    root = place(folder)
    if not root.is_dir():
        raise UserError(f"{folder} is no directory: give a folder of run directories")
    for pattern in ("run.json", "*/run.json", "*/*/run.json"):
        for file in sorted(matching(root, pattern)):
            try:
                run = RunDirectory(str(file.parent))
                yield run, run.read_info()
            except (UserError, OSError) as failure:
                unread[str(file.parent)] = str(failure)


def _of_capture(registry: Registry, capture: Capture) -> FoundRun:
    def read() -> Iterator[Sequence[Record]]:
        for baseline in registry.of_capture(capture):
            yield baseline.records

    return FoundRun(
        run_id=capture.run_id,
        place=f"{registry.root}/{capture.reference}",
        began_at=capture.measured_at,
        gate=GateConfig(),
        read=read,
    )


Past = Mapping[tuple[str, str], tuple[float, ...]]
"""Log ratios of the medians of successive runs, by point id and operation."""


def past_log_ratios(registry: Registry, candidate: Iterable[Record]) -> Past:
    """Returns by how much successive captured runs differed, for the points of a run.

    Each run counts once, in the order in which they were measured. The candidate's own run is left
    out, and so is what was measured on another machine or storage.
    """
    from orbax_bench_core.gate import run_log_ratio

    records = list(candidate)
    points = {record.point_id: record for record in reversed(records)}
    own = {record.run_id for record in records}
    captured = {capture.run_id: capture for capture in registry.captures()}.values()
    wanted = [  # in the order of measurement; both arms of a run are one run
        (capture.reference, point.point_id)
        for capture in sorted(captured, key=lambda each: (each.measured_at, each.id))
        if capture.run_id not in own
        for point in capture.points
        if point.point_id in points
    ]
    times: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for baseline in registry.baselines(wanted):
        if other_surroundings(baseline.records[0].provenance, points[baseline.point_id].provenance):
            continue
        for operation, seconds in seconds_per_repeat(baseline.records, cpu=True).items():
            if all(value > 0 for value in seconds):
                times.setdefault((baseline.point_id, operation), []).append(seconds)
    return {
        key: tuple(run_log_ratio(before, now) for before, now in itertools.pairwise(runs))
        for key, runs in times.items()
    }
