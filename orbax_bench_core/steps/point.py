"""Point step: measurement of one sweep point, or of both arms of a pair, in a pipeline."""

from __future__ import annotations

import dataclasses
import os
from typing import Final, NamedTuple

from orbax_bench_core.analysis.verdicts import attempts, words
from orbax_bench_core.execute import (
    HOST_WAIT_S,
    Event,
    HostsMissing,
    Progress,
    Retry,
    RunSettings,
    Session,
    Watcher,
    detect_cluster,
    equal_everywhere,
    on_hosts,
)
from orbax_bench_core.records import Record, RunInfo
from orbax_bench_core.steps.comparison import Judged, compare_arms
from orbax_bench_core.steps.measuring import measure_points

SAID: Final = "orbax-bench: "
"""Begins every line that a step prints for people."""


class PointFailed(Exception):
    """A sweep point failed in a step that was asked to be strict."""


class PointOutcome(NamedTuple):
    """Run and records of a point that a step has measured.

    Attributes:
        info: The run.
        records: Records of the point's measured repeats and warm-ups.
    """

    info: RunInfo
    records: list[Record]


def measure_point(
    session: Session, *, limits: bool = True, strict: bool = False, lock: bool = True
) -> PointOutcome:
    """Runs what a point still lacks: its repeats, or blocks of both its arms until a verdict.

    Args:
        session: A session of one point or pair.
        limits: Whether to measure what the machine and the storage can do, once per run.
        strict: Whether a failed repeat is an error rather than data. In a comparison failures are
            judged, and it is an error that there was nothing to compare.
        lock: Whether to wait until nothing else of ours measures on this machine.

    Raises:
        PointFailed: A repeat failed, or nothing was there to compare, and `strict` is set.
        CannotRecord: A record could not be written.
    """
    (entry,) = session.entries
    if session.pairs:
        verdicts = compare_arms(session, lock=lock)
        records = session.directory.point_records(entry)
        reasons = [point.reason for point in verdicts.points if point.failed]
    else:
        measure_points(session, limits=limits, lock=lock)
        records = session.directory.point_records(entry)
        failed = [record for record in records if record.status == "failed" and not record.warmup]
        reasons = [record.error.message if record.error else "failed" for record in failed]
    if strict and reasons:
        raise PointFailed(f"{entry.name} {entry.id}: {reasons[0]}")
    return PointOutcome(session.info, records)


def run_point(
    point_json: str,
    output_directory: str,
    *,
    settings: RunSettings,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    host_wait_s: float = HOST_WAIT_S,
) -> PointOutcome:
    """Measures one entry of a run that `plan` has begun, and prints what happens.

    Where a launcher has started the same step on several hosts, all of them measure together, and
    each returns the same: process 0 orchestrates, the others serve it and read what it has written.

    Args:
        point_json: The point or pair, as `plan` returned it.
        output_directory: The run directory.
        settings: How to run it.
        limits: As in `measure_point`.
        strict: As in `measure_point`.
        lock: As in `measure_point`.
        host_wait_s: Seconds for which a lost host is waited for.

    Raises:
        UserError: The directory holds no run, hosts cannot join, or the suite does not fit them.
        PointFailed: A repeat failed and `strict` is set, or a host was lost.
    """
    session = Session.rejoin(
        output_directory, point_json, settings=settings, watch=_Log(), say=_say
    )
    (entry,) = session.entries
    cluster = None if settings.placed else detect_cluster(os.environ)
    if cluster is not None:
        _say(cluster.said)

    def measure(known: RunSettings) -> int:
        known_session = dataclasses.replace(session, settings=known)
        try:
            measure_point(known_session, limits=limits, strict=strict, lock=lock)
        except HostsMissing as lost:
            raise PointFailed(str(lost)) from None
        return 0

    code = on_hosts(
        cluster,
        session.directory,
        measure,
        suite=session.suite,
        equal={**equal_everywhere(), "the point": entry.id},
        settings=settings,
        say=_say,
        host_wait_s=host_wait_s,
        part=entry.id,
    )
    if code:
        raise PointFailed(f"process 0 ended with exit code {code}; what it printed says why")
    return PointOutcome(session.info, session.directory.point_records(entry))


class _Log(Watcher):
    """Log of a step: one line per event."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Retry):
            _say(f"{event.point.name} repeat {event.index} is tried again: {event.reason}")
        elif isinstance(event, Judged):
            self._judged(event)

    def _progress(self, progress: Progress) -> None:
        if progress.repeat is not None and progress.arm is None:
            error = progress.repeat.error
            reason = "" if error is None else f": {error.said}"
            status = progress.repeat.status
            _say(f"{progress.point.name} repeat {progress.index}: {status}{reason}")

    def _judged(self, event: Judged) -> None:
        verdict = event.verdict
        ratios = ", ".join(
            f"{operation.operation} {words.interval(operation.verdict)} "
            f"{operation.verdict.ratio:.3f}"
            for operation in verdict.operations
            if operation.primary and operation.verdict.ratio is not None
        )
        said = "; ".join(filter(None, [verdict.reason or ratios, *attempts(verdict)]))
        decided = words.decided(verdict)
        word = f"{verdict.word}, {decided}" if decided else verdict.word
        _say(f"{verdict.point} after {words.design(verdict)}: {word}: {said}")


def _say(line: str) -> None:
    print(f"{SAID}{line}", flush=True)  # the log of a pipeline step is what it prints
