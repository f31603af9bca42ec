"""Settings that each target honours, why others do not, and the tables of the page that says so."""

from collections.abc import Iterator
from typing import Final

from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.settings import Settings
from orbax_bench_pipelines.targets.values import StepSettings

_HERE: Final = {"parallelism", "environment", "retries", "backoff_s", "backoff_factor"}
_SERVICE: Final = {
    *("image", "steps", "parallelism", "tpu", "gpu", "gpu_hosts", "cpu", "memory"),
    *("retries", "backoff_s", "backoff_factor", "environment", "labels", "service_account"),
    *("pipeline_root", "experiment", "endpoint", "spot", "launcher_settings"),
    *("reservation", "flex_start", "max_run_s"),
}
HONOURED: Final[dict[Target, set[str]]] = {
    Target.LOCAL: _HERE,
    Target.DOCKER: {*_HERE, "image", "steps"},
    Target.KFP: {
        *_SERVICE,
        *("node_selectors", "node_affinity", "tolerations", "pvc", "namespace", "timeout_s"),
        *("secrets", "pull_secrets", "shared_memory", "scratch", "queue", "priority"),
        *("annotations", "security_context", "ephemeral_storage"),
    },
    Target.VERTEX: {
        *_SERVICE,
        *("tensorboard", "project", "location", "network", "encryption_key"),
    },
}
"""The fields of `Settings` by what honours them; `checks` says under which conditions."""

OF_STEPS: Final[dict[Target, set[str]]] = {
    Target.LOCAL: set(),
    Target.DOCKER: {"image", "retries"},
    Target.KFP: {"image", "cpu", "memory", "retries", "timeout_s"},
    Target.VERTEX: {"image", "cpu", "memory", "retries"},
}
"""The fields of `StepSettings`, likewise."""

_NODES: Final = "the steps of Vertex AI do not run on your nodes"
_PODS: Final = "the steps of Vertex AI are not your pods"
_QUEUE: Final = "Kueue is part of your cluster"
_LIMIT: Final = (
    "Vertex AI Pipelines has no time limit for a step; for the custom jobs of tpu it is "
    "launcher_settings.timeout_s=SECONDS"
)
_OF_GOOGLE: Final = "Kubeflow takes it from its own installation"
REASONS: Final[dict[tuple[Target, str], str]] = {
    **{
        (Target.VERTEX, name): _NODES for name in ("node_selectors", "node_affinity", "tolerations")
    },
    (Target.VERTEX, "pvc"): "Vertex AI has no volume claims; give gs:// paths",
    (Target.VERTEX, "scratch"): "Vertex AI has no volumes; its machines have a disk",
    (Target.VERTEX, "shared_memory"): "Vertex AI gives a step the shared memory of its machine",
    (Target.VERTEX, "secrets"): "Vertex AI has none of Kubernetes; give the service account access "
    "to what they would open",
    (Target.VERTEX, "pull_secrets"): "Vertex AI pulls as its service agent, which must have access "
    "to the registry",
    (Target.VERTEX, "security_context"): _PODS,
    (Target.VERTEX, "ephemeral_storage"): "Vertex AI gives a step the disk of its machine",
    (Target.VERTEX, "queue"): _QUEUE,
    (Target.VERTEX, "priority"): _QUEUE,
    (Target.VERTEX, "annotations"): _PODS,
    (Target.VERTEX, "timeout_s"): _LIMIT,
    (Target.KFP, "network"): _OF_GOOGLE,
    (Target.KFP, "encryption_key"): _OF_GOOGLE,
    (Target.LOCAL, "image"): "every step runs in this environment",
}
"""Reason of a target that cannot honour a setting, where there is more to say than that."""


def dropped(settings: Settings, target: Target) -> Iterator[tuple[str, str]]:
    """Yields each setting that a target would drop, and why, for messages."""
    for name in settings.given:
        if name not in HONOURED[target]:
            takers = " or ".join(other.value for other in Target if name in HONOURED[other])
            yield name, f"{_refusal(target, name)}; leave it out or use --target {takers}"
    if "steps" in HONOURED[target]:
        for step, own in settings.steps.items():
            for key in own.given:
                if key not in OF_STEPS[target]:
                    yield "steps", f"{step}.{key}: {_refusal(target, key)}"


def _refusal(target: Target, name: str) -> str:
    reason = REASONS.get((target, name))
    because = f": {reason}" if reason else ""
    return f"the target {target.value} cannot honour it{because}"


_OF_LAUNCHED: Final = ("spot", "reservation", "flex_start", "max_run_s", "launcher_settings")
_CONDITIONS: Final = {
    **{(Target.VERTEX, name): "without a launcher" for name in ("cpu", "memory")},
    **{(Target.VERTEX, name): "with a launcher" for name in _OF_LAUNCHED},
    **{
        (Target.KFP, name): "with a launcher" for name in ("ephemeral_storage", "launcher_settings")
    },
    (Target.DOCKER, "steps"): "`image`, `retries`",
    (Target.VERTEX, "steps"): "no `timeout_s`",
}
_WRITER: Final = "python -m orbax_bench_pipelines.compile"


def settings_page(page: str) -> str:
    """Returns the page with its tables written again, each between the comments with its name."""
    targets = " | ".join(target.value for target in Target)
    rule = "|---" * len(Target)
    below = (
        f"| `{name}` | {' | '.join('yes' * (name in OF_STEPS[target]) for target in Target)} |"
        for name in StepSettings.model_fields
    )
    reasons = (
        f"| {target.value} | `{name}` | {REASONS[target, name]} |"
        for target in sorted(Target)
        for name in Settings.model_fields
        if (target, name) in REASONS
    )
    tables = {
        "keys": [f"| key | {targets} | meaning |", f"|---{rule}|---|", *_rows()],
        "keys of steps": [f"| key | {targets} |", f"|---{rule}|", *below],
        "refusals": ["| target | key | reason |", "|---|---|---|", *reasons],
    }
    for name, lines in tables.items():
        head, begin, rest = page.partition(f"<!-- {name}: {_WRITER} -->\n")
        _, end, tail = rest.partition(f"\n<!-- end of {name} -->")
        page = "".join([head, begin, "\n", *(f"{line}\n" for line in lines), end, tail])
    return page


def _rows() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        honoured = (
            _CONDITIONS.get((target, name), "yes") if name in HONOURED[target] else ""
            for target in Target
        )
        yield f"| `{name}` | {' | '.join(honoured)} | {field.description} |"
