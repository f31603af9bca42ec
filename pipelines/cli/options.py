"""Options that several sub-commands share.

One option per field of `Settings`, and those that say which pipeline runs with which parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from orbax_bench_pipelines.target import Target

PipelineName = Annotated[
    str,
    typer.Option("--pipeline", metavar="NAME", help="See `orbax-bench pipeline list`."),
]
RunTarget = Annotated[Target, typer.Option("--target", help="Where it runs.")]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print what would be sent, as JSON, and send nothing; needs no credentials.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name", help="Name of the run or schedule; by default that of pipeline and suite."
    ),
]


def _text(help_text: str, *, metavar: str) -> Any:
    return Annotated[str | None, typer.Option(help=help_text, metavar=metavar)]


def _many(help_text: str, metavar: str, flag: str) -> Any:
    return Annotated[
        list[str] | None, typer.Option(flag, help=f"{help_text} Repeatable.", metavar=metavar)
    ]


PARAMETERS: dict[str, tuple[Any, Any]] = {
    "fixture": (
        _text(
            "A suite file; its first checkpoint is generated when SUITE loads one that is missing.",
            metavar="FILE",
        ),
        None,
    ),
    "baseline": (_text("A baseline or run to compare with.", metavar="DIR"), None),
    "enable_hlo_dump": (
        Annotated[
            bool, typer.Option("--enable-hlo-dump", help="Write XLA HLO protos to hlo_dump/.")
        ],
        False,
    ),
    "remove_repeated_dir": (
        Annotated[
            bool,
            typer.Option("--remove-repeated-dir", help="Delete checkpoint data after each repeat."),
        ],
        False,
    ),
    "no_limits": (
        Annotated[
            bool,
            typer.Option("--no-limits", help="Do not measure what the machine and storage can do."),
        ],
        False,
    ),
    "points_per_step": (
        Annotated[
            int,
            typer.Option(
                min=0, help="Points that one step measures; 0 for so many that it takes minutes."
            ),
        ],
        0,
    ),
    "set_": (
        _many("Another parameter of the pipeline.", "NAME=VALUE", "--set"),
        None,
    ),
}
"""Options for a pipeline's parameters: annotation and default."""


def _number(help_text: str) -> Any:
    return Annotated[int | None, typer.Option(min=0, help=help_text)]


SETTINGS: dict[str, Any] = {
    "image": _text("Image that the steps run in.", metavar="IMAGE"),
    "steps": _many(
        "Setting of one step, or of `others` than those that measure: image, cpu, memory, retries, "
        "timeout_s.",
        "STEP.KEY=VALUE",
        "--step",
    ),
    "parallelism": _number(
        "Steps that measure at a time, 0 for all; by default 1 on a cluster, as they share the "
        "storage."
    ),
    "tpu": _many(
        "Measure on such slices, each in a loop and a folder of its own when there are several.",
        "TYPE:TOPOLOGY",
        "--tpu",
    ),
    "gpu": _text("GPUs of each step that measures, such as h100-80gb:8.", metavar="KIND:COUNT"),
    "gpu_hosts": _number(
        "Machines with such GPUs that measure a point together, which a launcher starts."
    ),
    "launcher_settings": _many(
        "Setting of the launcher that starts hosts, such as strategy=SPOT; see "
        "`orbax-bench launch --set`.",
        "KEY=VALUE",
        "--launcher-set",
    ),
    "cpu": _text("CPUs of the steps that measure, such as 8.", metavar="CPUS"),
    "memory": _text("Memory of the steps that measure, such as 64Gi.", metavar="BYTES"),
    "retries": _number(
        "How often a step is tried again; those that measure 2 times by default, on a service."
    ),
    "backoff_s": _number("Seconds until a step is tried again; 60 by default."),
    "backoff_factor": Annotated[
        float | None, typer.Option(min=1, help="By how much they grow each time; 2 by default.")
    ],
    "timeout_s": _number("Seconds that a step may take."),
    "environment": _many("Variable of every step.", "NAME=VALUE", "--env"),
    "secrets": _many(
        "Secret of Kubernetes, as a variable or a folder of every step.",
        "NAME:KEY=VARIABLE|NAME:/PATH",
        "--secret",
    ),
    "pull_secrets": _many(
        "Secret of Kubernetes with which images are pulled.", "NAME", "--pull-secret"
    ),
    "pvc": _many("Volume claim that every step mounts.", "NAME:/PATH", "--pvc"),
    "shared_memory": _text("Size of /dev/shm in the steps that measure.", metavar="BYTES"),
    "scratch": _many(
        "Volume that lives as long as the pod of a step that measures.",
        "/PATH:SIZE[:CLASS]",
        "--scratch",
    ),
    "node_selectors": _many("Label of the nodes that measure.", "KEY=VALUE", "--node-selector"),
    "node_affinity": _many(
        "Condition on the labels of the nodes that measure.", "'KEY in A,B'", "--node-affinity"
    ),
    "tolerations": _many(
        "Taint that measuring steps tolerate.", "KEY[=VALUE][:EFFECT]", "--toleration"
    ),
    "spot": Annotated[
        bool | None,
        typer.Option("--spot/--no-spot", help="Measure on spot machines of Google Cloud."),
    ],
    "queue": _text("Kueue's local queue, which admits the steps that measure.", metavar="NAME"),
    "priority": _text("Kueue's priority class in that queue.", metavar="NAME"),
    "labels": _many("Label of the pods or of the run.", "KEY=VALUE", "--label"),
    "annotations": _many("Annotation of the pods.", "KEY=VALUE", "--annotation"),
    "service_account": _text("Service account of the steps.", metavar="NAME"),
    "pipeline_root": _text("Where artifacts are stored.", metavar="URI"),
    "experiment": _text("Experiment that the run belongs to.", metavar="NAME"),
    "tensorboard": _text(
        "Vertex AI TensorBoard of the experiment: projects/P/locations/L/tensorboards/ID.",
        metavar="RESOURCE",
    ),
    "project": _text(
        "Google Cloud project of Vertex AI; by default $GOOGLE_CLOUD_PROJECT.", metavar="ID"
    ),
    "location": _text(
        "Location of Vertex AI, such as us-central1; by default $GOOGLE_CLOUD_LOCATION.",
        metavar="NAME",
    ),
    "network": _text(
        "VPC network of the steps on Vertex AI: projects/NUMBER/global/networks/NAME.",
        metavar="RESOURCE",
    ),
    "encryption_key": _text(
        "Cloud KMS key of the run on Vertex AI: projects/P/locations/L/keyRings/R/cryptoKeys/K.",
        metavar="RESOURCE",
    ),
    "endpoint": _text("Address of Kubeflow Pipelines, or another one of Vertex AI.", metavar="URL"),
    "namespace": _text("Namespace of the user, in a multi-user Kubeflow.", metavar="NAME"),
}
"""The options that set what a field of `Settings` holds."""

_CONNECTION = ("endpoint", "namespace", "experiment", "project", "location")
_FILE = _text("YAML file with any of the options below as keys.", metavar="FILE")


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command every option of `SETTINGS`, and `--settings`, as `**flags`."""
    return _with_options(command, {"settings": (_FILE, None)}, dict.fromkeys(SETTINGS))


def with_connection(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say where a service is, and `--settings`, as `**flags`."""
    return _with_options(command, {"settings": (_FILE, None)}, dict.fromkeys(_CONNECTION))


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command every option of `PARAMETERS` as `**flags`."""
    return _with_options(command, PARAMETERS, {})


def _with_options(
    command: Callable[..., None],
    options: dict[str, tuple[Any, Any]],
    settings: dict[str, None],
) -> Callable[..., None]:
    everything = {**options, **{name: (SETTINGS[name], None) for name in settings}}
    signature = inspect.signature(command, eval_str=True)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, (annotation, default) in everything.items()
    ]
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*own, *added]
    )
    command.__annotations__ = {each.name: each.annotation for each in (*own, *added)} | {
        "return": None
    }
    return command
