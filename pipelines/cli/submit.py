"""`orbax-bench pipeline submit`: start a run and return."""

from __future__ import annotations

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

    Exit codes: 0 it was accepted, 1 the service refused it, 2 something given is wrong.
    """
    from orbax_bench_pipelines.cli.preparing import check_submission, prepare, say_notes
    from orbax_bench_pipelines.cli.running import refused_as_exit_code, require_service
    from orbax_bench_pipelines.targets import as_text, service_for

    require_service(target)
    prepared = prepare(
        suite,
        output_directory,
        pipeline=pipeline,
        target=target,
        name=name,
        settings=settings,
        changes=changes,
    )
    job = prepared.job
    check_submission(job)
    say_notes(prepared)
    with refused_as_exit_code():
        service = service_for(job, dry=dry_run)
        if dry_run:
            print(as_text(service.planned()))
            return
        print(f"Run: {service.submit(create=create)}")
    print(f"Run directory: {job.arguments['output_directory']}")
