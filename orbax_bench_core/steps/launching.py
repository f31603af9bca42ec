"""Launching step: sweep points measured on hosts that a launcher starts, waited for here."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import RunSettings, Session
from orbax_bench_core.launchers import expected_of, job_name, make_launcher
from orbax_bench_core.provenance import IMAGE
from orbax_bench_core.steps.point import SAID, BatchOutcome, PointFailed
from orbax_bench_core.sweep import SweepEntry, sides


@dataclasses.dataclass(frozen=True, kw_only=True)
class PointHosts:
    """Hosts that a point is measured on.

    Attributes:
        launcher: What starts them: a place that `orbax-bench launch --on` takes.
        tpu: Their TPU slice, as `TYPE:TOPOLOGY`; empty for machines without TPUs, of which there
            are as many as the point has processes.
        slices: How many such slices.
        settings: Settings of the place, each `KEY=VALUE`.
        noted: File in which a place of Google Cloud notes what it has created; empty for none.
    """

    launcher: str
    tpu: str = ""
    slices: int = 1
    settings: Sequence[str] = ()
    noted: str = ""


def point_hosts(
    launcher: str,
    tpu: str = "",
    slices: int = 1,
    settings: Sequence[str] | None = None,
    noted: str = "",
) -> PointHosts | None:
    """Returns the hosts that a step was asked to start; None where it names no launcher."""
    if launcher:
        return PointHosts(
            launcher=launcher,
            tpu=tpu,
            slices=slices,
            settings=settings or (),
            noted=noted,
        )
    if tpu or settings:
        given = f"the slice {tpu}" if tpu else ", ".join(settings or ())
        raise UserError(f"{given}: name the launcher that it is for, such as jobset or vertex")
    return None


def launch_batch(
    points: Sequence[str],
    output_directory: str,
    *,
    hosts: PointHosts,
    settings: RunSettings,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    expect: str = "",
) -> BatchOutcome:
    """Measures some entries of a run that `plan` has begun on hosts of their own, and waits.

    Each runs `orbax-bench step run-sweep-point`, where it is a container in the image of this step,
    which `ORBAX_BENCH_IMAGE` names by digest. Interrupted or told to end, it clears the hosts up.
    """
    session = Session.rejoin(output_directory, *points)
    ids = [entry.id for entry in session.entries]
    said = _said(session.entries)
    flags = {
        "--keep-data": settings.keep_data,
        "--enable-hlo-dump": settings.hlo_dump,
        "--no-limits": not limits,
        "--strict": strict,
        "--no-lock": not lock,
    }
    if hosts.tpu and not expect:
        expect = expected_of(hosts.launcher, hosts.settings, hosts.tpu, hosts.slices)
    words = [flag for flag, given in flags.items() if given]
    words += ["--expect", expect] if expect else []
    command = ("orbax-bench", "step", "run-sweep-point", *ids, "-o", output_directory, *words)
    processes = [point.processes for entry in session.entries for point in sides(entry).values()]
    launcher = make_launcher(
        hosts.launcher,
        hosts.settings,
        processes,
        hosts=None if hosts.tpu else max(processes),
        tpu=hosts.tpu,
        slices=hosts.slices,
        name=job_name(session.info.run_id, *ids),
        command=command,
        output_directory=output_directory,
        image=os.environ.get(IMAGE),
        noted=hosts.noted,
    )
    print(f"{SAID}{said}: measured on hosts started by {hosts.launcher}", flush=True)
    code = launcher.start()
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
    """Returns which points these are, for people."""
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"{entries[0].name} {entries[0].id}{more}"
