"""Point step: measurement of a batch of points, here or on hosts that a launcher starts."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from orbax_bench_core import execute
from orbax_bench_core.analysis.verdicts import told, why
from orbax_bench_core.config import GateConfig
from orbax_bench_core.experiments import PairJudged, compare_arms, measure_points
from orbax_bench_core.launchers import expected_of, job_name, make_launcher
from orbax_bench_core.leases import batch_name
from orbax_bench_core.pages import count
from orbax_bench_core.provenance import IMAGE
from orbax_bench_core.records import Record, RunInfo
from orbax_bench_core.sweep import SweepEntry, sides

SAID: Final = "orbax-bench: "
"""Begins every line that a step prints for people."""
ENDED: Final = f"{SAID}error: "
"""Begins those that say why it has ended."""


class PointFailed(Exception):
    """A sweep point failed in a step that was asked to be strict."""


class BatchOutcome(NamedTuple):
    """Run and records of the points that a step has measured, warm-ups too, in their order."""

    info: RunInfo
    records: dict[str, list[Record]]

    @classmethod
    def of(cls, session: execute.Session) -> Self:
        """Reads what is recorded of the points of a session."""
        found = {
            entry.id: list(session.directory.read_point(entry).records) for entry in session.entries
        }
        return cls(session.info, found)

    @property
    def failures(self) -> dict[str, str]:
        """Name and reason of each point of which a measured repeat failed, by its id."""
        return {
            point_id: f"{record.point.name} {point_id}: "
            + (record.error.message if record.error else "failed")
            for point_id, records in self.records.items()
            for record in reversed(records)  # the first one stays
            if record.status == "failed" and not record.warmup
        }


def measure_batch(
    session: execute.Session, *, limits: bool = True, strict: bool = False, lock: bool = True
) -> BatchOutcome:
    """Runs what points still lack: their repeats, or blocks of both arms until a verdict.

    Args:
        session: The run, joined for some of its entries.
        limits: Whether to measure the limits of the machine afterwards.
        strict: Whether a failed repeat is an error; otherwise it is only a record.
        lock: Whether to wait while another command measures on this machine.

    Raises:
        PointFailed: `strict`, and a repeat or an arm failed.
    """
    if session.pairs:
        verdicts = compare_arms(session, lock=lock)
        outcome = BatchOutcome.of(session)
        failed = [
            f"{point.point} {point.point_id}: {why(point.reason)}"
            for point in verdicts.points
            if point.failed
        ]
    else:
        measure_points(session, limits=limits, lock=lock)
        outcome = BatchOutcome.of(session)
        failed = list(outcome.failures.values())
    if strict and failed:
        raise PointFailed(failed[0])
    return outcome


def run_batch(
    points: Sequence[str],
    output_directory: str,
    *,
    settings: execute.RunSettings,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    host_wait_s: float = execute.HOST_WAIT_S,
) -> BatchOutcome:
    """Measures some entries of a run that `plan` has begun, and prints what happens.

    Args:
        points: Ids of the entries, or the entries as JSON.
        output_directory: The run directory that `plan` has begun.
        settings: How and where workers run.
        limits: Whether the limits of machine and storage are measured, too.
        strict: Whether a failed repeat fails the step, rather than being recorded alone.
        lock: Whether the measuring lock of the machine is held meanwhile.
        host_wait_s: Seconds that process 0 waits for the other hosts to join.

    Returns:
        What is recorded of the points, including what earlier attempts at this step had measured.

    Raises:
        PointFailed: A host is missing, process 0 has failed, or with `strict` a repeat has.
        UserError: The run has no such points, or another command measures them.
    """
    # Where a launcher has started the same step on several hosts, all of them measure together, and
    # each returns the same: process 0 orchestrates, the others serve it and read what it has
    # written.
    session = execute.Session.rejoin(output_directory, *points, settings=settings, say=say)
    session = dataclasses.replace(session, watch=_Log(session.info.gate))
    cluster = None if settings.placed else execute.detect_cluster(os.environ)
    if cluster is not None:
        say(cluster.said)

    found: list[BatchOutcome] = []

    def measure(known: execute.RunSettings) -> int:
        known_session = dataclasses.replace(session, settings=known)
        try:
            found.append(measure_batch(known_session, limits=limits, strict=strict, lock=lock))
        except execute.HostsMissing as lost:
            raise PointFailed(str(lost)) from None
        return 0

    code = execute.on_hosts(
        cluster,
        session.directory,
        measure,
        suite=session.suite,
        settings=settings,
        say=say,
        host_wait_s=host_wait_s,
        part=batch_name([entry.id for entry in session.entries]),
    )
    if code:
        raise PointFailed(f"process 0 ended with exit code {code}; what it printed says why")
    return found[0] if found else BatchOutcome.of(session)


class _Log(execute.Watcher):
    def __init__(self, gate: GateConfig) -> None:
        self._gate = gate

    def __call__(self, event: execute.Event) -> None:
        if isinstance(event, execute.Progress):
            if event.repeat is not None and event.arm is None:
                error = event.repeat.error
                reason = "" if error is None else f": {error.said}"
                status = event.repeat.status
                say(f"{event.point.name} repeat {event.index}: {status}{reason}")
        elif isinstance(event, execute.Retry):
            say(f"{event.point.name} repeat {event.index} is tried again: {event.reason}")
        elif isinstance(event, PairJudged):
            self._judged(event)

    def _judged(self, event: PairJudged) -> None:
        verdict = event.verdict
        made = count(verdict.blocks, "block") if verdict.mode == "paired" else verdict.mode
        say(f"{verdict.point} after {made}: {told(verdict, self._gate).said}")


def say(line: str) -> None:
    """Prints a line for people: the log of a pipeline step is what it prints."""
    print(f"{SAID}{line}", flush=True)


def launch_batch(
    points: Sequence[str],
    output_directory: str,
    *,
    launcher: str,
    tpu: str = "",
    slices: int = 1,
    launcher_settings: Sequence[str] = (),
    noted: str = "",
    settings: execute.RunSettings,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    expect: str = "",
) -> BatchOutcome:
    """Measures some entries of a run that `plan` has begun on hosts of their own, and waits.

    The `launcher`, a place of `orbax-bench launch --on`, starts the slices or, without `tpu`, as
    many machines as a point has processes. A place of Google Cloud notes in the file `noted` what
    it has created.
    """
    # Each runs `orbax-bench step run-sweep-point`, where it is a container in the image of this
    # step, which `ORBAX_BENCH_IMAGE` names by digest. Interrupted or told to end, it clears the
    # hosts up.
    session = execute.Session.rejoin(output_directory, *points)
    ids = [entry.id for entry in session.entries]
    said = _said(session.entries)
    flags = {
        "--keep-data": settings.keep_data,
        "--enable-hlo-dump": settings.hlo_dump,
        "--no-limits": not limits,
        "--strict": strict,
        "--no-lock": not lock,
    }
    if tpu and not expect:
        expect = expected_of(launcher, launcher_settings, tpu, slices)
    words = [flag for flag, given in flags.items() if given]
    words += ["--expect", expect] if expect else []
    command = ("orbax-bench", "step", "run-sweep-point", *ids, "-o", output_directory, *words)
    processes = [point.processes for entry in session.entries for point in sides(entry).values()]
    launch = make_launcher(
        launcher,
        launcher_settings,
        processes,
        hosts=None if tpu else max(processes),
        tpu=tpu,
        slices=slices,
        name=job_name(session.info.run_id, *ids),
        command=command,
        output_directory=output_directory,
        image=os.environ.get(IMAGE),
        noted=noted,
    )
    print(f"{SAID}{said}: measured on hosts started by {launcher}", flush=True)
    code = launch.start()
    if code:
        raise PointFailed(
            f"{said}: its hosts ended with exit code {code}; what they printed "
            "says why, and the same step goes on from what is recorded"
        )
    outcome = BatchOutcome.of(session)
    unrecorded = [entry for entry in session.entries if not outcome.records[entry.id]]
    if unrecorded:
        raise PointFailed(
            f"{_said(unrecorded)}: its hosts exited with 0 but left no record in {output_directory}"
        )
    return outcome


def _said(entries: Sequence[SweepEntry]) -> str:
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{entries[0].name} {entries[0].id}{more}"
