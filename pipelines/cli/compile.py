"""`orbax-bench pipeline compile` and `list`: pipelines as packages, and their parameters."""

from typing import Annotated

import typer

from orbax_bench_pipelines.cli.options import Changes, PipelineName, SettingsFile
from orbax_bench_pipelines.target import Package


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
    import sys
    from pathlib import Path

    from orbax_bench_core.errors import Problem, UserError
    from orbax_bench_pipelines.cli.preparing import checked_settings
    from orbax_bench_pipelines.definitions import find_pipeline
    from orbax_bench_pipelines.targets import Placement, Target, at_submission, require_extras

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
    text = compiled(chosen.by_default(defaults), Placement(target.target, given, folder_per_run))
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


def list_pipelines() -> None:
    """List the pipelines and their parameters, with defaults."""
    import json

    from orbax_bench_pipelines.definitions import PIPELINES

    for pipeline in PIPELINES:
        print(f"{pipeline.name}: {pipeline.summary}")
        for name, default in pipeline.parameters.items():
            print(f"  {name}={json.dumps(default)}")
