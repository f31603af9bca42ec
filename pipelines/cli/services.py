"""`orbax-bench pipeline submit`, `schedule`, `pause` and `resume`: runs on a service."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile
from orbax_bench_pipelines.cli.options import (
    Changes,
    Create,
    DryRun,
    Name,
    PipelineName,
    Service,
    SettingsFile,
)
from orbax_bench_pipelines.target import Target

if TYPE_CHECKING:
    from orbax_bench_pipelines.cron import Cron


def submit(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    target: Service,
    pipeline: PipelineName = "sweep",
    name: Name = None,
    dry_run: DryRun = False,
    create: Create = False,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Start a pipeline on Kubeflow or Vertex AI, and return at once.

    Exit codes: 0 it was accepted, 1 the service refused it, 2 the input is wrong.
    """
    from orbax_bench_pipelines.cli.preparing import prepare
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.targets import service_for

    require_service(target)
    job, _ = prepare(suite, output_directory, pipeline, target, name, settings, changes)
    with refused_as_exit_code():
        service = service_for(job, dry=dry_run)
        if dry_run:
            print(service.planned())
            return
        print(f"Run: {service.submit(create=create)}")
    print(f"Run directory: {job.arguments['output_directory']}")


ScheduleName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the schedule, as `schedule` printed it.")
]


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
    target: Service,
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
    create: Create = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Pause the schedule of that name until no run of it is active, then change it.",
        ),
    ] = False,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Run a pipeline on a schedule, on Kubeflow or Vertex AI.

    A schedule of the same name is changed, never duplicated, and none of its runs is cancelled.
    Each run writes to its own folder below the output directory. The suite is read now; schedule
    again after changing it. `pause` and `resume` take the name.

    Exit codes: 0 it was accepted, 1 the service refused it, 2 the input is wrong.
    """
    from orbax_bench_core.errors import Problem, UserError
    from orbax_bench_pipelines.cli.preparing import prepare
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.cron import parse_cron
    from orbax_bench_pipelines.targets import require_extras, service_for

    require_service(target)
    require_extras(target)
    when = parse_cron(cron, time_zone)
    when.sent(target)  # what it cannot honour is refused first
    given = (suite, output_directory, pipeline, target, name, settings, changes)
    job, _ = prepare(*given, folder_per_run=True)
    if target is Target.VERTEX and job.settings.experiment is not None:
        raise UserError(
            Problem(
                "Vertex AI associates single runs with an experiment, not the runs of a schedule; "
                "leave it out",
                key="experiment",
            )
        )
    _say_times(when, cron, target)
    with refused_as_exit_code():
        service = service_for(job, dry=dry_run)
        if dry_run:
            print(service.planned_schedule(when, max_concurrent))
            return
        print(service.schedule(when, max_concurrent, wait=wait, say=_say, create=create))
    print(f"Run directories: {job.arguments['output_directory']}/<time of the run>")


def pause(
    name: ScheduleName,
    target: Service,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Pause a schedule; active runs continue to their end.

    Exit codes: 0 it was paused, 1 the service refused it, 2 there is none of that name.
    """
    _change(name, target, settings, changes, "pause")


def resume(
    name: ScheduleName,
    target: Service,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Resume a schedule at its next time; missed runs are not made up for.

    Exit codes: 0 it was resumed, 1 the service refused it, 2 there is none of that name.
    """
    _change(name, target, settings, changes, "resume")


def _change(
    name: str, target: Target, file: str | None, changes: list[str] | None, call: str
) -> None:
    from orbax_bench_pipelines.cli.preparing import checked_settings
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.targets import check_connection, require_extras, schedules_of

    require_service(target)
    require_extras(target)
    settings, _ = checked_settings(file, changes, target)
    check_connection(settings, target)
    with refused_as_exit_code():
        schedules = schedules_of(settings, target, name)
        print("\n".join(schedules.pause() if call == "pause" else schedules.resume()))


def _say(line: str) -> None:
    print(f"note: {line}", file=sys.stderr, flush=True)


def _say_times(cron: "Cron", given: str, target: Target) -> None:
    """Says how the cron was converted, and when it fires next."""
    sent = cron.sent(target)
    reads = "six fields, seconds first" if target is Target.KFP else "five fields"
    if sent.removeprefix(f"TZ={cron.zone} ") != " ".join(given.split()):
        _say(f"{target} reads {reads}: {given!r} is sent as {sent!r}")
    soon = ", ".join(f"{time:%Y-%m-%d %H:%M}" for time in cron.upcoming())
    _say(f"fires next at {soon} ({cron.zone})")
