"""Step run-sweep-point: every repeat of one sweep point."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from orbax_bench_core.execute import HOST_WAIT_S, RunSettings
from orbax_bench_core.launchers import expected_devices
from orbax_bench_core.lineage import records_metadata
from orbax_bench_core.steps.launching import PointHosts, launch_point
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.planning import entry_of_run, write_records
from orbax_bench_core.steps.point import PointOutcome, run_point


def run_sweep_point(
    point: str,
    output_directory: str,
    *,
    records: str,
    settings: RunSettings | None = None,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    host_wait_s: float = HOST_WAIT_S,
    hosts: PointHosts | None = None,
    expect: str = "",
) -> Outputs[str]:
    """Measures a point, or blocks of both arms of a pair until it has its verdict.

    Args:
        point: The point, as plan-sweep returned it, or its id.
        output_directory: The run directory that plan-sweep began.
        records: Where the point's records are written as JSON lines.
        settings: How to measure.
        limits: Whether to measure what the machine and the storage can do, once per run.
        strict: Whether a failed repeat fails the step.
        lock: Whether to wait until nothing else of ours measures on this machine.
        host_wait_s: Seconds for which a lost host is waited for.
        hosts: Hosts to start, on which the point is measured; None measures it here.
        expect: The devices that must be there, as `launchers.expected_devices` reads them; with
            others nothing is measured. Empty takes any, and on a slice those of the slice.

    Returns:
        The value is `passed` or `failed`; `records` are those of measured repeats and warm-ups.

    Raises:
        UserError: The directory holds no run, or not this point, or hosts cannot be had, or have
            other devices than were expected.
        PointFailed: A repeat failed and `strict` is set, or hosts did not come to their end.
    """
    measure: Callable[..., PointOutcome] = functools.partial(run_point, host_wait_s=host_wait_s)
    if hosts is not None:
        measure = functools.partial(launch_point, hosts=hosts, expect=expect)
    given = settings or RunSettings()
    given = dataclasses.replace(given, expect=expected_devices(expect) or given.expect)
    entry = entry_of_run(point, output_directory)
    _, found = measure(
        entry,
        output_directory,
        settings=given,
        limits=limits,
        strict=strict,
        lock=lock,
    )
    write_records(found, records)
    status = "failed" if any(record.status == "failed" for record in found) else "passed"
    metadata = records_metadata(output_directory, entry, records) | {"status": status}
    written = Output(metadata=metadata, place=records, copied=True)
    return Outputs(value=status, named={"records": written})
