"""`orbax-bench pipeline schedule`: run a pipeline again and again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile
from orbax_bench_pipelines.cli.options import (
    DryRun,
    Name,
    PipelineName,
    with_parameters,
    with_settings,
)
from orbax_bench_pipelines.target import Target


@with_parameters
@with_settings
def schedule(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    cron: Annotated[
        str,
        typer.Option(
            help="When: minute hour day-of-month month day-of-week, such as '0 3 * * *'.",
            metavar="CRON",
        ),
    ],
    target: Annotated[Target, typer.Option("--target", help="kfp or vertex.")],
    time_zone: Annotated[
        str | None,
        typer.Option(help="IANA time zone of the cron, such as Europe/Berlin; UTC by default."),
    ] = None,
    max_concurrent: Annotated[
        int, typer.Option(min=1, help="How many runs may overlap; they would share the storage.")
    ] = 1,
    pipeline: PipelineName = "sweep",
    name: Name = None,
    dry_run: DryRun = False,
    **flags: Any,
) -> None:
    """Run a pipeline on a schedule, on Kubeflow or Vertex AI.

    A schedule of the same name is replaced, never doubled. Each run writes to a folder of its own
    below the output directory. The suite is read now; schedule again after changing it.

    Exit codes: 0 it was accepted, 1 the service refused it, 2 something given is wrong.
    """
    from orbax_bench_core.config import Problem, UserError
    from orbax_bench_pipelines.cli.preparing import check_submission, prepare, say_notes
    from orbax_bench_pipelines.cli.remote import refused_as_exit_code, require_service
    from orbax_bench_pipelines.cli.timing import read_time, say_times
    from orbax_bench_pipelines.extras import require_extras
    from orbax_bench_pipelines.job import as_text

    require_service(target)
    require_extras(target)
    when = read_time(cron, time_zone, target)
    prepared = prepare(
        suite,
        output_directory,
        pipeline=pipeline,
        target=target,
        name=name,
        folder_per_run=True,
        flags=flags,
    )
    job = prepared.job
    if target is Target.VERTEX and job.settings.experiment is not None:
        raise UserError(
            Problem(
                "Vertex AI associates single runs with an experiment, not the runs of a schedule; "
                "leave it out",
                key="--experiment",
            )
        )
    check_submission(job)
    say_notes(prepared)
    say_times(when, cron, target)
    with refused_as_exit_code():
        if target is Target.KFP:
            from orbax_bench_pipelines import kubeflow

            if dry_run:
                print(as_text(kubeflow.planned(job, when, max_concurrent)))
                return
            new, old = kubeflow.Kubeflow(job).schedule(when, max_concurrent)
            print(f"Recurring run: {job.name} {new}")
            for each in old:
                print(f"replaces {each}")
        else:
            from orbax_bench_pipelines.vertex import Vertex

            vertex = Vertex(job, dry=dry_run)
            if dry_run:
                print(as_text(vertex.planned_schedule(when, max_concurrent)))
                return
            resource, updated = vertex.schedule(when, max_concurrent)
            print(f"Schedule {'updated' if updated else 'created'}: {job.name} {resource}")
    print(f"Run directories: {job.arguments['output_directory']}/<time of the run>")
