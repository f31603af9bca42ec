"""Step run-sweep-point: every repeat of a batch of sweep points."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import HOST_WAIT_S, RunSettings
from orbax_bench_core.launchers import expected_devices
from orbax_bench_core.leases import batch_name
from orbax_bench_core.lineage import artifact_metadata, file_digest, name_batch
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.launching import PointHosts, launch_batch
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.planning import points_in
from orbax_bench_core.steps.point import BatchOutcome, run_batch


@tried_again
def run_sweep_point(
    points: Sequence[str],
    output_directory: str,
    *,
    settings: RunSettings | None = None,
    limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    host_wait_s: float = HOST_WAIT_S,
    hosts: PointHosts | None = None,
    expect: str = "",
) -> Outputs[list[str]]:
    """Measures points, or blocks of both arms of pairs until they have their verdicts.

    What was measured is named in the run directory, in a file of `batches` that nothing replaces,
    by the digest of the records of each point.

    Args:
        points: Texts that name the points: ids, as plan-sweep returned them, or points as JSON.
        output_directory: The run directory that plan-sweep began.
        settings: How to measure.
        limits: Whether to measure what the machine and the storage can do, once per run.
        strict: Whether a failed repeat fails the step.
        lock: Whether to wait until nothing else of ours measures on this machine.
        host_wait_s: Seconds for which a lost host is waited for.
        hosts: Hosts to start, on which the points are measured; None measures them here.
        expect: The devices that must be there, as `launchers.expected_devices` reads them; with
            others nothing is measured. Empty takes any, and on a slice those of the slice.

    Returns:
        The value is `passed` or `failed` for each point; `records` is the file that names them.

    Raises:
        UserError: The directory holds no run, or not these points, or hosts cannot be had,
            or have other devices than were expected.
        PointFailed: A repeat failed and `strict` is set, or hosts did not come to their end.
    """
    measure: Callable[..., BatchOutcome] = functools.partial(run_batch, host_wait_s=host_wait_s)
    if hosts is not None:
        measure = functools.partial(launch_batch, hosts=hosts, expect=expect)
    given = [point for text in points for point in points_in(text)]
    if not given:
        raise UserError("there is no point to measure: give ids, as plan-sweep returned them")
    how = settings or RunSettings()
    how = dataclasses.replace(how, expect=expected_devices(expect) or how.expect)
    outcome = measure(
        given,
        output_directory,
        settings=how,
        limits=limits,
        strict=strict,
        lock=lock,
    )
    failed = outcome.failures
    status = "failed" if failed else "passed"
    run, ids = RunDirectory(output_directory), list(outcome.records)
    place = str(run.root / name_batch(run, batch_name(ids), ids, status))
    of_batch = artifact_metadata("records", run, digest=file_digest(place), path=place)
    written = Output(
        metadata=of_batch | {"status": status, "points": str(len(ids))}, place=place, copied=True
    )
    statuses = ["failed" if point_id in failed else "passed" for point_id in ids]
    return Outputs(value=statuses, named={"records": written})
