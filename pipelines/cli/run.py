"""`orbax-bench pipeline run`: run a pipeline to its end."""

from __future__ import annotations

from typing import Any

import typer

from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile
from orbax_bench_pipelines.cli.options import (
    DryRun,
    Name,
    PipelineName,
    RunTarget,
    with_parameters,
    with_settings,
)
from orbax_bench_pipelines.target import Target


@with_parameters
@with_settings
def run(
    suite: SuiteFile,
    output_directory: OutputDirectory,
    target: RunTarget = Target.LOCAL,
    pipeline: PipelineName = "sweep",
    name: Name = None,
    dry_run: DryRun = False,
    **flags: Any,
) -> None:
    """Run a pipeline to its end and show what it found.

    By default each step is a process on this machine: it needs no cluster and no Docker, and leaves
    the same run directory as `orbax-bench run`.

    Exit codes: 0 all passed, 1 something failed, 2 something given is wrong, 3 REGRESSION, 4
    INCONCLUSIVE.
    """
    from orbax_bench_core.cli.arguments import results_console
    from orbax_bench_pipelines.cli import running
    from orbax_bench_pipelines.cli.preparing import check_submission, prepare, say_notes

    console = results_console()  # while a pipeline runs here, `sys.stdout` is its log
    prepared = prepare(
        suite, output_directory, pipeline=pipeline, target=target, name=name, flags=flags
    )
    check_submission(prepared.job)
    say_notes(prepared)
    if dry_run:
        print(running.planned(prepared.job))
        return
    with running.refused_as_exit_code():
        failure = running.run_job(prepared.job, suite, console)
    raise typer.Exit(running.conclude(prepared.job, failure, console))
