"""Page of the settings, from their model: one table of keys, options, targets and meanings."""

from __future__ import annotations

from collections.abc import Iterator

from orbax_bench_pipelines.target import Target
from orbax_bench_pipelines.targets.honoured import HONOURED, OF_STEPS, REASONS
from orbax_bench_pipelines.targets.settings import Settings
from orbax_bench_pipelines.targets.values import StepSettings

_CONDITIONS = {
    (Target.VERTEX, "cpu"): "without a launcher",
    (Target.VERTEX, "memory"): "without a launcher",
    **{
        (Target.VERTEX, name): "with a launcher"
        for name in ("spot", "reservation", "flex_start", "max_run_s")
    },
    (Target.KFP, "ephemeral_storage"): "with a launcher",
    (Target.KFP, "launcher_settings"): "with a launcher",
    (Target.VERTEX, "launcher_settings"): "with a launcher",
    (Target.DOCKER, "steps"): "`image`, `retries`",
    (Target.VERTEX, "steps"): "no `timeout_s`",
}
_EXAMPLE = """
```yaml
# settings.yaml
image: europe-docker.pkg.dev/my-project/bench/orbax-bench-tpu@sha256:...
steps:
  others: {image: "europe-docker.pkg.dev/my-project/bench/orbax-bench:0.1.0", memory: 4Gi}
  aggregate: {cpu: "4", memory: 32Gi}
tpu: ["v5e:2x4", "v6e:2x4"]
tolerations: [{key: dedicated, operator: Equal, value: benchmarks, effect: NoSchedule}]
pvc: [{name: bench, path: /mnt/bench}]
retries: 2
backoff_s: 60
timeout_s: 14400
secrets:
- {name: storage, key: key, variable: AWS_SECRET_ACCESS_KEY}
- {name: certificates, path: /etc/bench}
scratch: [{path: /scratch, size: 200Gi, storage_class: premium-rwo}]
node_affinity: [{key: topology.kubernetes.io/zone, values: [us-central1-a, us-central1-b]}]
queue: tpu-queue
labels: {team: training}
```
"""
_HEAD = """# Settings

Everything that is set at submit time is a key of a YAML file, which `orbax-bench pipeline run`,
`submit`, `schedule` and `compile` take as `--settings FILE`. `--set KEY=VALUE` puts a value in
place of the file's: `tpu=v5e:2x4`, `labels.team=ml`, `steps.aggregate.memory=32Gi`, or YAML, such
as `pvc='{name: bench, path: /mnt/bench}'` and `tpu='[v5e:2x4, v6e:2x4]'`. A mistake in the file is
named with its line and key. What a target cannot honour is refused with the reason, and nothing is
dropped.
"""
_NOTES = """\
GPUs are `KIND:COUNT`, such as `h100-80gb:8`, or `COUNT` on a cluster without GKE's labels. A kind
is written as here, as GKE or as Vertex AI writes it. A step expects the devices that it was
given, by platform, kind and count, and fails before it measures where JAX finds others, as in an
image without the library for them.

A launcher starts the hosts of `tpu` on Vertex AI, of a `tpu` of several hosts on Kubeflow, and of
`gpu_hosts` on both. Of hosts that it starts on Kubeflow, CPUs, memory, node selectors, tolerations,
variables, queue, spot, reservation, flex-start, user, disk and one claim are those of the hosts.
Secrets, affinity, priority, scratch and shared memory do not reach them and are refused; labels,
annotations and time are those of the step.

Kubeflow's backend drops every capability of a step and makes none privileged. A container with TPUs
that needs `SYS_RESOURCE` to lock memory, as GKE before 1.28 asks for, is therefore one that a
launcher starts: `security_context: {capabilities: [SYS_RESOURCE]}`, also for slices of one host. On
GKE 1.28 or later a step may have the TPUs itself, by GKE's guide; neither was run here.

`max_run_s` is an annotation for Kueue's request where there is a `queue`, else a label of the node
that GKE is asked for, and on Vertex AI the longest time of the custom job. `reservation`, `spot`
and `flex_start` exclude each other.

A step that is tried again goes on from what is recorded; enforce-verdict, whose failure is the
answer, is not. [Kubeflow](kubeflow.md) starts a step again whose pod was deleted or evicted, and no
container that ended with a code; what Vertex AI starts again was not seen here. The local runner
and Docker start one again that failed. `retries` says how often.

Kueue admits pods where it was told to manage them; never run here.

An image by tag may be another one on the next machine: records say which image ran where it is
given by its digest, and `unknown` elsewhere.
"""


def settings_page() -> str:
    """Returns the page as Markdown."""
    targets = list(Target)
    lines = [
        _HEAD,
        f"| key | {' | '.join(target.value for target in targets)} | meaning |",
        f"|---|{'---|' * len(targets)}---|",
        *_rows(targets),
        "",
        "Below `steps` stands the name of a step, or `others` for all that do not measure:",
        "",
        f"| key | {' | '.join(target.value for target in targets)} |",
        f"|---|{'---|' * len(targets)}",
        *(
            f"| `{name}` | {' | '.join(_yes(name in OF_STEPS[target]) for target in targets)} |"
            for name in StepSettings.model_fields
        ),
        _EXAMPLE,
        "## What is refused, and why",
        "",
        "| target | key | reason |",
        "|---|---|---|",
        *(f"| {target.value} | `{name}` | {reason} |" for (target, name), reason in _reasons()),
        "",
        _NOTES,
    ]
    return "\n".join(lines)


def _rows(targets: list[Target]) -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        honoured = (_cell(target, name) for target in targets)
        yield f"| `{name}` | {' | '.join(honoured)} | {field.description} |"


def _cell(target: Target, name: str) -> str:
    if name not in HONOURED[target]:
        return ""
    return _CONDITIONS.get((target, name), "yes")


def _yes(there: bool) -> str:
    return "yes" if there else ""


def _reasons() -> list[tuple[tuple[Target, str], str]]:
    order = list(Settings.model_fields)
    return sorted(REASONS.items(), key=lambda each: (each[0][0], order.index(each[0][1])))
