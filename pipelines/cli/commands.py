"""The commands of `orbax-bench pipeline`, and the options that several of them share."""

import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from orbax_bench_core.cli.arguments import JUnit, Notify, OutputDirectory, SuiteFile
from orbax_bench_pipelines.target import Package, Target

if TYPE_CHECKING:
    from orbax_bench_pipelines.cron import Cron

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run suites as pipelines, here or on a cluster.\n\n"
    "In processes or containers on this machine, on Kubeflow or on Vertex AI.",
)
PipelineName = Annotated[
    str,
    typer.Option("--pipeline", metavar="NAME", help="See `orbax-bench pipeline list`."),
]
RunTarget = Annotated[Target, typer.Option("--target", help="Where it runs.")]
Service = Annotated[Target, typer.Option("--target", help="kfp or vertex.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print what would be sent, as JSON, and send nothing; needs no credentials.",
    ),
]
Create = Annotated[
    bool,
    typer.Option(
        "--create",
        help="Create what Vertex AI needs if it is missing: the bucket of pipeline_root, and "
        "the roles of the service account on it. Otherwise a message says so.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", help="Name of the run or schedule; by default that of pipeline and suite."
    ),
]
SettingsFile = Annotated[
    str | None,
    typer.Option("--settings", metavar="FILE", help="YAML file of settings by key."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting, such as tpu=v5e:2x4 or steps.aggregate.memory=32Gi, in place of the "
        "file's, or a parameter of the pipeline, such as points_per_step=20. Repeatable; "
        "docs/pipelines/settings.md has the settings, `orbax-bench pipeline list` the parameters.",
    ),
]


@app.command()
def run(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    target: RunTarget = Target.LOCAL,
    pipeline: PipelineName = "sweep",
    name: Name = None,
    dry_run: DryRun = False,
    create: Create = False,
    notify: Notify = None,
    junit: JUnit = None,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Run a pipeline to its end and show what it found.

    By default each step is a process on this machine: it needs no cluster and no Docker, and leaves
    the same run directory as `orbax-bench run`.

    Exit codes: 0 all passed, 1 something failed, 2 the input is wrong, 3 REGRESSION, 4
    INCONCLUSIVE.
    """
    from orbax_bench_core.cli.hosts import name_in
    from orbax_bench_core.cli.terminal import results_console
    from orbax_bench_core.publishing import Notifiers
    from orbax_bench_pipelines.cli import running
    from orbax_bench_pipelines.preparing import prepare
    from orbax_bench_pipelines.targets import SubmissionFailed

    console = results_console()  # while a pipeline runs here, `sys.stdout` is its log
    notifiers = Notifiers() if dry_run else Notifiers.of(notify, junit)
    with notifiers.on_failure(output_directory, lambda: name_in(suite)):
        job, loaded = prepare(suite, output_directory, pipeline, target, name, settings, changes)
    if dry_run:
        print(running.planned(job))
        return
    notifiers.hidden(os.environ)
    suite_name = loaded.suite.suite_name
    with (
        running.refused_as_exit_code(),
        notifiers.on_failure(output_directory, lambda: suite_name, refusal=SubmissionFailed),
    ):
        ended = running.run_job(job, suite, console, create=create)
    told = running.Told(notifiers, suite_name)
    raise typer.Exit(running.conclude(job, ended, console, told))


@app.command()
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
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.preparing import prepare
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


@app.command()
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
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.cron import parse_cron
    from orbax_bench_pipelines.preparing import prepare
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


@app.command()
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


@app.command()
def resume(
    name: ScheduleName,
    target: Service,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Resume a schedule at its next time.

    Missed runs are not made up for.

    Exit codes: 0 it was resumed, 1 the service refused it, 2 there is none of that name.
    """
    _change(name, target, settings, changes, "resume")


@app.command()
def report(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="What the service calls the run.")],
    target: Service,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page, HTML.")],
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Say how a run of a service ended, and fetch its report.

    Both come from the exit task of the run, so that this machine need not read the run directory.

    Exit codes: 0 it succeeded, or 1 FAILED, 3 REGRESSION, 4 INCONCLUSIVE; 1 too if the service has
    nothing of it, 2 the input is wrong.
    """
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service, save_report
    from orbax_bench_pipelines.preparing import checked_settings
    from orbax_bench_pipelines.targets import check_connection, ending_of, require_extras

    require_service(target)
    require_extras(target)
    given, _ = checked_settings(settings, changes, target)
    check_connection(given, target)
    with refused_as_exit_code():
        raise typer.Exit(save_report(ending_of(given, target, run_id), run_id, output))


@app.command("compile")
def compile_package(
    target: Annotated[
        Package, typer.Option("--target", help="What runs it; gke is the same as kfp.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file; - for standard output.")
    ],
    pipeline: PipelineName = "sweep",
    folder_per_run: Annotated[
        bool,
        typer.Option(
            "--folder-per-run",
            help="Each run writes to its own folder below its output directory, as runs of a "
            "schedule must.",
        ),
    ] = False,
    settings: SettingsFile = None,
    changes: Changes = None,
) -> None:
    """Write a pipeline as a package.

    For Kubeflow on GKE it has two documents, the pipeline and its Kubernetes settings; Vertex AI
    reads one document only.

    Settings of steps are compiled in. Account, network, key and place of a run are given when the
    package is submitted; if they are set here, a message names them. The suite and the output
    directory stay parameters of the package; a parameter that is set here is a default there.
    """
    from pathlib import Path

    from orbax_bench_core.errors import Problem, UserError
    from orbax_bench_pipelines.definitions import find_pipeline
    from orbax_bench_pipelines.preparing import checked_settings
    from orbax_bench_pipelines.targets import Placement, at_submission, require_extras

    chosen = find_pipeline(pipeline)
    require_extras(Target.KFP)
    from orbax_bench_pipelines.compile import compiled

    given, defaults = checked_settings(settings, changes, target.target, chosen)
    left = at_submission(given, target.target)
    if left:
        print(
            f"note: not part of a package, give it on submission: {', '.join(left)}",
            file=sys.stderr,
        )
    placement = Placement(target.target, given, folder_per_run)
    text = compiled(dataclasses.replace(chosen, defaults=defaults), placement)
    if output == "-":
        sys.stdout.write(text)
        return
    if Path(output).suffix not in (".yaml", ".yml"):
        raise UserError(Problem(f"a package is a .yaml file, got {output!r}", key="--output"))
    try:
        Path(output).write_text(text)
    except OSError as error:
        raise UserError(
            Problem(f"cannot write {output}: {error.strerror}", key="--output")
        ) from None
    print(f"Package: {output}")


@app.command("list")
def list_pipelines() -> None:
    """List the pipelines and their parameters, with defaults."""
    import json

    from orbax_bench_pipelines.definitions import PIPELINES

    for pipeline in PIPELINES:
        print(f"{pipeline.name}: {pipeline.summary}")
        for name, default in pipeline.parameters.items():
            print(f"  {name}={json.dumps(default)}")


def _change(
    name: str, target: Target, file: str | None, changes: list[str] | None, call: str
) -> None:
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.preparing import checked_settings
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
