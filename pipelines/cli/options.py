"""Options that several sub-commands share."""

from typing import Annotated

import typer

from orbax_bench_pipelines.target import Target

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
