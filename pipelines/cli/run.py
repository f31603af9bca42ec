"""`orbax-bench pipeline run`: run a pipeline to its end."""

import os

import typer

from orbax_bench_core.cli.arguments import JUnit, Notify, OutputDirectory, SuiteFile
from orbax_bench_pipelines.cli.options import (
    Changes,
    Create,
    DryRun,
    Name,
    PipelineName,
    RunTarget,
    SettingsFile,
)
from orbax_bench_pipelines.target import Target


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
    from orbax_bench_core.steps import Notifiers
    from orbax_bench_pipelines.cli import running
    from orbax_bench_pipelines.cli.preparing import prepare
    from orbax_bench_pipelines.targets import SubmissionFailed

    console = results_console()  # while a pipeline runs here, `sys.stdout` is its log
    notifiers = Notifiers() if dry_run else Notifiers.of(notify, junit)
    with notifiers.on_failure(name_in(suite), output_directory):
        job, loaded = prepare(suite, output_directory, pipeline, target, name, settings, changes)
    if dry_run:
        print(running.planned(job))
        return
    notifiers.hidden(os.environ)
    suite_name = loaded.suite.suite_name
    with (
        running.refused_as_exit_code(),
        notifiers.on_failure(suite_name, output_directory, refusal=SubmissionFailed),
    ):
        failure = running.run_job(job, suite, console, create=create)
    told = running.Told(notifiers, suite_name)
    raise typer.Exit(running.conclude(job, failure, console, told))
