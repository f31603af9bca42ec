"""From a run to a capture."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Sequence

from orbax_bench_core.compare.registry.model import (
    Baseline,
    Capture,
    CapturedPoint,
    new_capture_id,
)
from orbax_bench_core.compare.registry.store import Registry
from orbax_bench_core.config.arms import Arm
from orbax_bench_core.records.machine import UNKNOWN
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.run_directory import Repeat, RunDirectory, RunInfo
from orbax_bench_core.sweep.point import SweepPoint


@dataclasses.dataclass(frozen=True, kw_only=True)
class Captured:
    """What became of a run.

    Attributes:
        revision: What it is filed under.
        capture: The capture; None when no point could be captured.
        left_out: Why a point was left out, by its name.
    """

    revision: str
    capture: Capture | None
    left_out: dict[str, str]


def capture_run(
    run: RunDirectory,
    registry: Registry,
    *,
    arm: Arm = "candidate",
    revision: str | None = None,
) -> Captured:
    """Captures a run, or one arm of a paired run.

    A point with a failed or missing repeat is left out: it must not take the place of a good one.

    Args:
        run: The run.
        registry: Where to.
        arm: Which side of a paired run.
        revision: What to file it under; by default the commit of the code that ran.

    Raises:
        SuiteError: There is no run, or the registry cannot be written.
    """
    info = run.read_info()
    found: dict[str, Sequence[Record]] = {}
    left_out: dict[str, str] = {}
    for point in info.expansion.points:
        side = point.side(arm if point.candidate is not None else None)
        repeats = _repeats(run, info, point, arm)
        problem = _problem(repeats)
        if side.id in found:
            problem = "another point of this run measured the same"
        if problem:
            left_out[point.name] = problem
        else:
            every = (record for repeat in repeats for record in repeat.records.values())
            found[side.id] = [resolved(record) for record in every]
    revision = revision or _commit(found)
    if not found:
        return Captured(revision=revision, capture=None, left_out=left_out)
    capture = _describe(info, found, arm if info.paired else None, revision)
    baselines = [
        Baseline(
            point_id=point_id,
            commit=_commit({point_id: records}),
            captured_at=capture.captured_at,
            records=tuple(records),
        )
        for point_id, records in found.items()
    ]
    registry.add(capture, baselines)
    return Captured(revision=revision, capture=capture, left_out=left_out)


def resolved(record: Record) -> Record:
    """Returns a record of a paired run as one of the point that it measured; others as they are."""
    if record.point.candidate is None:
        return record
    point = record.measured
    return record.model_copy(
        update={"point": point, "point_id": point.id, "point_name": point.name}
    )


def _repeats(run: RunDirectory, info: RunInfo, point: SweepPoint, arm: Arm) -> list[Repeat]:
    if point.candidate is None:
        return [run.read_repeat(point, index) for index in range(info.num_repeats)]
    records = [
        record for record in run.point_records(point) if record.arm == arm and not record.warmup
    ]
    return [
        Repeat({record.host: record for record in hosts}, point.side(arm).processes)
        for hosts in (list(group) for _, group in itertools.groupby(records, _index))
    ]


def _index(record: Record) -> int:
    return record.repeat


def _problem(repeats: Sequence[Repeat]) -> str:
    """Returns why a point cannot be captured; empty when it can."""
    for repeat in repeats:
        if repeat.status != "passed":
            reason = "" if repeat.error is None else f": {repeat.error.type}"
            return f"a repeat did not pass{reason}"
    return "" if repeats else "nothing was measured"


def _describe(
    info: RunInfo, found: dict[str, Sequence[Record]], arm: Arm | None, revision: str
) -> Capture:
    now = datetime.datetime.now(datetime.UTC)
    points = [
        CapturedPoint(
            point_id=point_id,
            point=records[0].point_name,
            repeats=len({record.repeat for record in records}),
        )
        for point_id, records in found.items()
    ]
    return Capture(
        id=new_capture_id(now),
        revision=revision,
        captured_at=now,
        run_id=info.run_id,
        measured_at=info.created_at,
        suite=info.suite_name,
        arm=arm,
        points=tuple(points),
        provenance=next(iter(found.values()))[0].provenance,
    )


def _commit(found: dict[str, Sequence[Record]]) -> str:
    """Returns the commit of the code that ran, or `unknown`."""
    for records in found.values():
        git = records[0].provenance.get("git")
        if isinstance(git, dict):
            return str(git.get("commit", UNKNOWN))
    return UNKNOWN
